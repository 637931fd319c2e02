import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const root = join(import.meta.dirname, "../..");
const cache = join(root, "node_modules/.cache");
const prefix = "belfry-";
const dayMs = 86_400_000;

/** Of everything that the bundle is made of. */
function digest(): string {
  const hash = createHash("sha256").update(readFileSync(import.meta.filename));
  for (const path of [...globSync("{src,gen}/**/*.{ts,js}", { cwd: root }).sort(), "package-lock.json"]) {
    hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  }
  return hash.digest("hex").slice(0, 16);
}

/** Tests may set what is fixed elsewhere: `TEST_LIMITS`, JSON, in the environment of the process. */
const testLimits = {
  name: "test-limits",
  transform(code: string, id: string) {
    if (id !== join(root, "src/config/fixed-limits.ts")) return null;
    return `${code}\nObject.assign(fixedLimits, JSON.parse(process.env.TEST_LIMITS ?? "{}"));`;
  },
};

/** A module still reads what lies beside its source, and is the program that was started only if it is the first. */
const ownPlaces = {
  name: "own-places",
  transform(code: string, id: string) {
    if (!id.startsWith(join(root, "src/"))) return null;
    const places = { url: pathToFileURL(id).href, filename: id, dirname: dirname(id) };
    const own = id === join(root, "src/main.ts") ? code : code.replaceAll(/\bimport\.meta\.main\b/g, "false");
    return own.replaceAll(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, name: keyof typeof places) =>
      JSON.stringify(places[name]),
    );
  },
};

async function make(): Promise<string> {
  const dir = join(cache, `${prefix}${digest()}`);
  const main = join(dir, "main.mjs");
  if (existsSync(main)) return main;
  for (const name of existsSync(cache) ? readdirSync(cache) : []) {
    const old = join(cache, name);
    // Another run may have made it, and still start it.
    if (name.startsWith(prefix) && Date.now() - statSync(old).mtimeMs > dayMs)
      rmSync(old, { recursive: true, force: true });
  }
  const bundle = await rolldown({
    cwd: root,
    input: "src/main.ts",
    platform: "node",
    plugins: [ownPlaces, testLimits],
  });
  const fresh = `${dir}.${process.pid}`;
  await bundle.write({ dir: fresh, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });
  await bundle.close();
  try {
    renameSync(fresh, dir);
  } catch (error) {
    // Another process was first.
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(main)) throw error;
  }
  return main;
}

/** For NODE_COMPILE_CACHE: what the first process has compiled serves the others. */
export const compiled = join(cache, "compiled");

let made: Promise<string> | undefined;

/**
 * The command line, `src/main.ts`, in a few files of JavaScript. A process of it starts in a quarter of the time: Node finds
 * and reads the thousand modules of the sources one by one.
 */
export function program(): Promise<string> {
  made ??= make();
  return made;
}
