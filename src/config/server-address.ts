import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const fileIn = (dataDir: string) => join(dataDir, "server.url");

/** Keeps the address of a server that serves in its data directory, for programs on the same machine. @throws Node's error where it cannot be written */
export function keepAddress(dataDir: string, url: string): void {
  const file = fileIn(dataDir);
  writeFileSync(`${file}.new`, `${url}\n`, { mode: 0o644 });
  renameSync(`${file}.new`, file);
}

/** Reads the address of the server that was started last on a data directory; undefined where none was. */
export function keptAddress(dataDir: string): string | undefined {
  try {
    const url = readFileSync(fileIn(dataDir), "utf8").trim();
    return URL.canParse(url) ? url : undefined;
  } catch {
    return undefined;
  }
}
