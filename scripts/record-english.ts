/**
 * `node scripts/record-english.ts`: lowers the counts of words that are not plain English to what is left of them. No count
 * is raised and no file added: a new text uses the words of `test/support/english-rules.ts`. With --all it counts all again.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { englishCounts } from "../test/support/english-rules.ts";
import { readTree } from "../test/support/tree.ts";

const root = new URL("..", import.meta.url).pathname;
const file = `${root}test/support/english-exceptions.json`;
const before: Record<string, number> = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
const now = [...englishCounts(readTree(root))].map(([path, found]): [string, number] => [
  path,
  process.argv.includes("--all") ? found.length : Math.min(found.length, before[path] ?? 0),
]);
const counts = now.filter(([, count]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(file, `${JSON.stringify(Object.fromEntries(counts), undefined, 2)}\n`);
console.log(`${counts.reduce((sum, [, count]) => sum + count, 0)} words in ${counts.length} files`);
