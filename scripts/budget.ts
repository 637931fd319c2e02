/**
 * Holds each folder of the tree to the lines and files that budget.json allows it: `node scripts/budget.ts`, a step of
 * `npm run check`. With --print it prints a budget a little above the sizes of now, to be kept in place of the old one.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Size {
  readonly lines: number;
  readonly files: number;
}

interface Bound extends Size {
  /** Names what was deleted elsewhere, or what allows the folder to be larger than before. */
  readonly why?: string;
}

export type Budget = Readonly<Record<string, Bound>>;

const root = join(import.meta.dirname, "..");
const file = "budget.json";
/** Each folder below these has a bound of its own beside that of the whole. */
const divided = ["src", "console", "bench", "test"];
/** Code that has moved here counts as well. */
const undivided = ["gen", "migrations"];
/** Pictures have no lines; drizzle-kit describes each state of the schema once more. */
const uncounted = /\.(?:png|gif|ico|binpb)$|^migrations\/meta\//;

/** Returns the folders that a file counts in: `src` and `src/events`. Files that lie in `src` itself count in `src/*`, too. */
function foldersOf(path: string): string[] {
  const [first = "", second = "", ...rest] = path.split("/");
  if (undivided.includes(first)) return [first];
  return divided.includes(first) ? [first, `${first}/${rest.length > 0 ? second : "*"}`] : [];
}

/** Adds up the sizes of files, given by path, for each folder that has a bound. */
export function sizesOf(files: Iterable<readonly [path: string, text: string]>): Map<string, Size> {
  const sizes = new Map<string, Size>();
  for (const [path, text] of files)
    for (const folder of foldersOf(path)) {
      const { lines = 0, files: count = 0 } = sizes.get(folder) ?? {};
      sizes.set(folder, { lines: lines + text.split("\n").length - 1, files: count + 1 });
    }
  return sizes;
}

/** Says of each folder that breaks the budget by how much, and what to do. */
export function overruns(sizes: ReadonlyMap<string, Size>, budget: Budget): string[] {
  const beyond = [...sizes].flatMap(([folder, size]) => {
    const bound = budget[folder];
    if (bound === undefined) return [`${folder}: has no bound. Add its line to ${file}, with a "why"`];
    return (["lines", "files"] as const)
      .filter((unit) => size[unit] > bound[unit])
      .map(
        (unit) =>
          `${folder}: ${size[unit]} ${unit}, ${bound[unit]} allowed. Delete or unite something in it; or raise "${unit}" in ` +
          `${file}, with a "why" that names what was deleted elsewhere or what allows it`,
      );
  });
  const gone = Object.keys(budget).filter((folder) => !sizes.has(folder));
  return [...beyond, ...gone.map((folder) => `${folder}: is gone. Remove its line from ${file}`)];
}

/** Says which bounds were raised without a new reason. */
export function unexplained(before: Budget, budget: Budget): string[] {
  return Object.entries(budget)
    .filter(([folder, { lines, files, why }]) => {
      const old = before[folder] ?? { lines: 0, files: 0 };
      return (lines > old.lines || files > old.files) && (why === undefined || why === "" || why === old.why);
    })
    .map(([folder]) => `${folder}: its bound was raised in ${file} without a new "why"`);
}

/** Returns a budget a little above these sizes. A reason stays as long as its bound has not become smaller. */
export function budgetFor(sizes: ReadonlyMap<string, Size>, before: Budget): Budget {
  return Object.fromEntries(
    [...sizes].sort().map(([folder, size]) => {
      const lines = Math.ceil((size.lines * 1.005) / 10) * 10;
      const files = size.files + Math.floor(size.files / 100);
      const old = before[folder];
      const why = old !== undefined && lines >= old.lines ? old.why : undefined;
      return [folder, { lines, files, ...(why !== undefined && { why }) }];
    }),
  );
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

/** Returns the budget before its last change, in this tree or in the history; undefined where git does not know it. */
function budgetBefore(now: string): Budget | undefined {
  try {
    const kept = git("show", `HEAD:${file}`);
    if (kept !== now) return JSON.parse(kept);
    const [, earlier] = git("log", "-2", "--format=%H", "--", file).split("\n");
    return earlier ? JSON.parse(git("show", `${earlier}:${file}`)) : undefined;
  } catch {
    return undefined;
  }
}

function main() {
  const paths = git(
    "ls-files",
    "--cached",
    "--others",
    "--exclude-standard",
    "--deduplicate",
    ...divided,
    ...undivided,
  );
  const deleted = new Set(git("ls-files", "--deleted").split("\n"));
  const texts = paths
    .split("\n")
    .filter((path) => path !== "" && !uncounted.test(path) && !deleted.has(path))
    .map((path) => [path, readFileSync(join(root, path), "utf8")] as const);
  const sizes = sizesOf(texts);
  const text = readFileSync(join(root, file), "utf8");
  const budget: Budget = JSON.parse(text);
  if (process.argv.includes("--print")) {
    const rows = Object.entries(budgetFor(sizes, budget)).map(([folder, bound]) => {
      const members = Object.entries(bound).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`);
      return `  ${JSON.stringify(folder)}: { ${members.join(", ")} }`;
    });
    console.log(`{\n${rows.join(",\n")}\n}`);
    return;
  }
  const before = budgetBefore(text);
  const wrong = [...overruns(sizes, budget), ...(before === undefined ? [] : unexplained(before, budget))];
  for (const line of wrong) console.error(line);
  if (wrong.length > 0) process.exitCode = 1;
}

if (import.meta.main) main();
