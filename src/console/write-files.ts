import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { buildConsole } from "./build.ts";

/** Encodings that files are kept in beside themselves, with the endings of those. */
export const keptEncodings = { br: ".br", gzip: ".gz" } as const;

/** Builds the console of `root` into the folder `dir`, with each file compressed beforehand. The folder is there whole, or not at all. */
export async function writeConsole(root: string, dir: string): Promise<void> {
  const files = await buildConsole(root);
  const making = `${dir}.${process.pid}`;
  rmSync(making, { recursive: true, force: true });
  try {
    mkdirSync(making, { recursive: true });
    await Promise.all(
      files.map(async ({ name, bytes }) => {
        const path = join(making, name);
        mkdirSync(dirname(path), { recursive: true });
        const [small, smaller] = await Promise.all([
          promisify(gzip)(bytes, { level: 9 }),
          promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
        ]);
        writeFileSync(path, bytes);
        writeFileSync(path + keptEncodings.gzip, small);
        writeFileSync(path + keptEncodings.br, smaller);
      }),
    );
    rmSync(dir, { recursive: true, force: true });
    renameSync(making, dir);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}
