// Makes dist/, from which the npm package runs: src/ and gen/ as plain JavaScript, since Node strips no types below
// node_modules, and what they read; and npm-shrinkwrap.json, by which npm checks the digest of each package that it installs with
// this one. `npm pack` runs it before, and with --clean after: a checkout needs neither, and npm would prefer the second to its lock.
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, resolve } from "node:path";
import { writeConsole } from "../src/console/write-files.ts";

const root = resolve(import.meta.dirname, "..");
const dist = join(root, "dist");
const shrinkwrap = join(root, "npm-shrinkwrap.json");

/** Imports of our own files, static and dynamic, whose names end in `.ts`. */
const ownImport = /(\b(?:from|import)\s*\(?\s*"(?:\.{1,2}\/|#gen\/)[^"\n]*)\.ts"/g;

function write(path: string, text: string): void {
  mkdirSync(dirname(join(dist, path)), { recursive: true });
  writeFileSync(join(dist, path), text);
}

/** Writes package-lock.json without what only development needs. */
function writeShrinkwrap(): void {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const { "": top, ...locked } = lock.packages as Record<string, { dev?: boolean; devDependencies?: object }>;
  const { devDependencies: _, ...own } = top ?? {};
  const shipped = Object.entries(locked).filter(([, { dev }]) => dev !== true);
  writeFileSync(
    shrinkwrap,
    `${JSON.stringify({ ...lock, packages: Object.fromEntries([["", own], ...shipped]) }, null, 2)}\n`,
  );
}

rmSync(dist, { recursive: true, force: true });
rmSync(shrinkwrap, { force: true });
if (!process.argv.includes("--clean")) {
  const { name, version, license, imports, files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  write("package.json", `${JSON.stringify({ name, version, license, private: true, type: "module", imports })}\n`);
  for (const path of globSync("{src,gen}/**/*.ts", { cwd: root })) {
    const text = stripTypeScriptTypes(readFileSync(join(root, path), "utf8"));
    // What is stripped leaves blanks, so that lines and columns in a stack are those of the source.
    write(path.replace(/\.ts$/, ".js"), text.replaceAll(ownImport, '$1.js"'));
  }
  for (const path of globSync(
    ["{src,gen}/**/*.*", "proto/**/*.proto", "migrations/**/*.{sql,json}", "docs/certificate.md"],
    {
      cwd: root,
    },
  )) {
    if (/\.ts$|README\.md$|_snapshot\.json$/.test(path)) continue; // the snapshots are for drizzle-kit
    cpSync(join(root, path), join(dist, path));
  }
  writeShrinkwrap();
  await writeConsole(root, join(dist, "console"));
  // The package holds modes of files as they are here: those of git, whatever the umask of this account was at the checkout.
  const packed = ["package.json", "README.md", "LICENSE", ...files.flatMap((path: string) => [path, `${path}/**`])];
  for (const path of globSync(packed, { cwd: root }).map((each) => join(root, each))) {
    const about = statSync(path);
    if (about.isFile()) chmodSync(path, about.mode & 0o100 ? 0o755 : 0o644);
  }
}
