import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Files of the repository: path from the root, with `/`, to the text. Generated files are listed with an empty text. */
export type Tree = ReadonlyMap<string, string>;

const foreign = new Set([".git", "node_modules", ".belfry", "coverage", "dist"]);
const binary = /\.(?:png|gif|ico|binpb)$/;

/** Reads the repository below `root`, but for what git ignores. */
export function readTree(root: string): Tree {
  const tree = new Map<string, string>();
  const walk = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (foreign.has(entry.name)) continue;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile()) {
        const unread = path.startsWith("gen/") || binary.test(path);
        tree.set(path, unread ? "" : readFileSync(join(root, path), "utf8"));
      }
    }
  };
  walk("");
  return tree;
}
