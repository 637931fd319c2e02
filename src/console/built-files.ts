import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Asset, asset } from "../http/pages/asset.ts";
import { pageName } from "./build.ts";
import { keptEncodings } from "./write-files.ts";

const execute = promisify(execFile);

/** The files of the console by their paths below `/console/`; the page's own is empty. */
export type ConsoleFiles = ReadonlyMap<string, Asset>;

/** The console as it is built, or why it is not. */
export interface BuiltConsole {
  /** Builds it where that is needed. The same promise until the sources change. @throws Error with the bundler's words */
  files(): Promise<ConsoleFiles>;
}

interface Options {
  /** The checkout or the unpacked package; this one, unless it is named. */
  root?: string;
  /** Where a checkout keeps what it has built. */
  dataDir: string;
  /** Whether sources may change while the server runs. */
  follow: boolean;
  /** Ends a build that runs. */
  signal?: AbortSignal;
}

/** Anyone may ask for the page, and each build takes a process. */
const failedMs = 10_000;

const ownRoot = join(import.meta.dirname, "../..");

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const kept = { "cache-control": "public, max-age=31536000, immutable" };
const page = {
  "cache-control": "no-cache",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
};

/** The package has the files; a checkout builds them, once for the same sources, when they are first wanted. */
export function builtConsole({ root = ownRoot, dataDir, follow, signal }: Options): BuiltConsole {
  const packaged = join(root, "console", pageName);
  let made: { digest: string; files: Promise<ConsoleFiles> } | undefined;

  function load(digest: string, dir: () => Promise<string>): Promise<ConsoleFiles> {
    if (made?.digest === digest) return made.files;
    const files = dir().then(readFiles);
    const own = { digest, files };
    made = own;
    // What could not be built is tried again, but not for each who asks.
    files.catch(() =>
      setTimeout(() => {
        if (made === own) made = undefined;
      }, failedMs).unref(),
    );
    return files;
  }

  async function built(digest: string): Promise<string> {
    const all = join(dataDir, "console");
    const dir = join(all, digest);
    if (existsSync(join(dir, pageName))) return dir;
    await mkdir(all, { recursive: true, mode: 0o700 });
    await execute(process.execPath, [join(root, "src/console/build-process.ts"), root, dir], { signal }).catch(
      ({ stderr, message }) => {
        throw new Error(String(stderr || message).trim());
      },
    );
    // Another process may build the same beside it.
    for (const name of await readdir(all))
      if (!name.startsWith(digest)) await rm(join(all, name), { recursive: true, force: true });
    return dir;
  }

  return {
    async files() {
      if (existsSync(packaged)) return await load("", async () => join(root, "console"));
      if (made !== undefined && !follow) return await made.files;
      const digest = await digestOf(root);
      return await load(digest, () => built(digest));
    },
  };
}

/** The digest of all that the files are made of. */
async function digestOf(root: string): Promise<string> {
  const patterns = ["console/**/*", "gen/**/*_pb.ts", "src/console/*.ts", "package-lock.json"];
  const paths = globSync(patterns, { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const digest = createHash("sha256");
  for (const path of paths)
    digest
      .update(path.slice(root.length))
      .update("\0")
      .update(await readFile(path))
      .update("\0");
  return digest.digest("hex").slice(0, 32);
}

async function readFiles(dir: string): Promise<ConsoleFiles> {
  const names = (await readdir(dir, { recursive: true })).filter((name) => !/\.(?:br|gz)$/.test(name));
  const files = await Promise.all(
    names.map(async (name) => {
      const file = asset(name, await readFile(join(dir, name)), name === pageName ? page : kept);
      for (const [encoding, ending] of Object.entries(keptEncodings)) {
        file.packed.set(encoding as keyof typeof keptEncodings, readFile(join(dir, name + ending)));
      }
      return [name === pageName ? "" : name, file] as const;
    }),
  );
  return new Map(files);
}
