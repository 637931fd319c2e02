import { execFileSync } from "node:child_process";
import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";
import { styleModules } from "../../src/console/build.ts";
import { temporaryDir } from "../support/database.ts";

const root = join(import.meta.dirname, "../..");

/** Names that Node.js shares with browsers, and that no module may use while it is loaded; the others it lacks. */
const traps = `
const used = (name) => () => { throw new Error(name + " is used while the page is loaded"); };
for (const name of ["localStorage", "sessionStorage", "navigator"]) Object.defineProperty(globalThis, name, { get: used(name) });
for (const name of ["fetch", "setTimeout", "setInterval", "queueMicrotask"]) globalThis[name] = used(name);
globalThis.BroadcastChannel = class { constructor() { used("BroadcastChannel")(); } };
`;

/** Loads these modules of the console, all in one process without a browser. Returns what was printed. */
async function load(modules: readonly string[]): Promise<string> {
  const dir = temporaryDir();
  const [first, all, main] = ["traps.js", "all.js", "main.js"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(first, traps);
  writeFileSync(all, modules.map((path) => `import ${JSON.stringify(join(root, path))};`).join("\n"));
  writeFileSync(main, `import "./traps.js";\nimport "./all.js";\nconsole.log("loaded");`);
  const bundle = await rolldown({
    input: main,
    cwd: root,
    tsconfig: join(root, "console/tsconfig.json"),
    logLevel: "silent",
    plugins: [styleModules(root, () => undefined)],
  });
  const file = join(dir, "bundle.mjs");
  await bundle.write({ file, codeSplitting: false });
  return execFileSync(process.execPath, [file], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

const entry = "console/main.tsx";
const modules = globSync("console/**/*.{ts,tsx}", { cwd: root })
  .filter((path) => path !== entry && path !== "console/frame/language.ts")
  .sort();

test("no module of the console does anything when it is loaded: what follows the browser starts with the page", async () => {
  expect(modules.length).toBeGreaterThan(150);
  expect(await load(modules)).toBe("loaded\n");
  await expect(load([entry])).rejects.toThrow(/is used while|is not defined/);
});
