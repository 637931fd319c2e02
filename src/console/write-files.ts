import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { buildConsole, pageName } from "./build.ts";

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
    moveTo(dir, making);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

/** Another process may have built the same meanwhile, and serve it: that stays. */
function moveTo(dir: string, making: string): void {
  try {
    renameSync(making, dir);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    if (existsSync(join(dir, pageName))) return;
    rmSync(dir, { recursive: true, force: true });
    renameSync(making, dir);
  }
}
