import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The names of all failpoints in the source, so that a new one is swept by itself. */
export function failpoints(): string[] {
  const names = globSync("src/**/*.ts", { cwd: root }).flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/\bfailpoint\("([^"]+)"\)/g)].map(
      (match) => match[1] as string,
    ),
  );
  return [...new Set(names)].sort();
}
