/**
 * Prints six sizes of the tree beside those of the commit that it is compared with, as a step of `npm run check`. Fails on a
 * function of more than 80 lines that is not in scripts/long-functions.json, a list that may only shrink.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { comparedCommit, describeCommit } from "../bench/support/compared-commit.ts";

const root = join(import.meta.dirname, "..");
const listPath = "scripts/long-functions.json";
const linesMax = 80;
const folders = ["src", "console", "test", "bench", "scripts"];

/** Texts by path. */
type Files = ReadonlyMap<string, string>;

/** A function by its file and name. */
interface LongFunction {
  readonly place: string;
  readonly lines: number;
}

/** Lists the functions that are longer than allowed, the longest first. Those without a name, such as a test's, do not count. */
export function longFunctions(files: Files): LongFunction[] {
  return [...files]
    .filter(([path, text]) => /\.tsx?$/.test(path) && linesOf(text) > linesMax)
    .flatMap(([path, text]) => longIn(path, text))
    .sort((a, b) => b.lines - a.lines);
}

/** Most files are the same in both commits. */
const parsed = new Map<string, LongFunction[]>();

function longIn(path: string, text: string): LongFunction[] {
  const known = parsed.get(path + text);
  if (known !== undefined) return known;
  const found: LongFunction[] = [];
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  function visit(node: ts.Node) {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const { parent } = node;
      const name =
        node.name ?? (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) ? parent.name : undefined);
      const lines = lineAt(node.end) - lineAt(node.getStart(source)) + 1;
      if (name !== undefined && lines > linesMax) found.push({ place: `${path} ${name.getText(source)}`, lines });
    }
    ts.forEachChild(node, visit);
  }
  visit(source);
  parsed.set(path + text, found);
  return found;
}

/** Says which long functions are not listed, which listed ones are long no more, and whether the list has grown. */
export function lengthErrors(
  long: readonly LongFunction[],
  listed: readonly string[],
  before: readonly string[] = listed,
) {
  const places = new Set(long.map(({ place }) => place));
  const grown = `${listPath}: ${listed.length} functions, ${before.length} before: the list may only shrink`;
  return [
    ...long
      .filter(({ place }) => !listed.includes(place))
      .map(({ place, lines }) => `${place}: ${lines} lines, ${linesMax} allowed`),
    ...listed
      .filter((place) => !places.has(place))
      .map((place) => `${place}: long no more, or gone: remove it from ${listPath}`),
    ...(listed.length > before.length ? [grown] : []),
  ];
}

const linesOf = (text: string) => text.split("\n").length - 1;

function sumOf(files: Files, folder: string): number {
  let lines = 0;
  for (const [path, text] of files) if (path.startsWith(`${folder}/`)) lines += linesOf(text);
  return lines;
}

/** Measures the six sizes of a tree, by name. */
export function sizesOf(files: Files, lock: string): Map<string, number> {
  const below = new Set([...files.keys()].flatMap((path) => /^src\/[^/]+(?=\/)/.exec(path) ?? []));
  return new Map([
    ["lines of src", sumOf(files, "src")],
    ["of its largest folder", Math.max(0, ...[...below].map((folder) => sumOf(files, folder)))],
    ["of console", sumOf(files, "console")],
    ["of test", sumOf(files, "test")],
    ["longest function", longFunctions(files)[0]?.lines ?? 0],
    ["packages", Object.keys(JSON.parse(lock).packages).length - 1],
  ]);
}

function git(args: readonly string[], input = ""): string {
  return execFileSync("git", args, {
    cwd: root,
    encoding: "utf8",
    input,
    maxBuffer: 2 ** 28,
    stdio: ["pipe", "pipe", "ignore"],
  });
}

const isText = (path: string) => path !== "" && !/\.(?:png|gif|ico|binpb|gz)$/.test(path);

function filesNow(): Files {
  const gone = new Set(git(["ls-files", "--deleted"]).split("\n"));
  const paths = git(["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", ...folders]).split(
    "\n",
  );
  return new Map(
    paths
      .filter((path) => isText(path) && !gone.has(path))
      .map((path) => [path, readFileSync(join(root, path), "utf8")]),
  );
}

function filesOf(commit: string): Files {
  const paths = git(["ls-tree", "-r", "--name-only", commit, ...folders])
    .split("\n")
    .filter(isText);
  const objects = Buffer.from(git(["cat-file", "--batch"], paths.map((path) => `${commit}:${path}\n`).join("")));
  let at = 0;
  return new Map(
    paths.map((path) => {
      const begin = objects.indexOf("\n", at) + 1;
      const bytes = Number(objects.toString("latin1", at, begin).split(" ")[2]);
      at = begin + bytes + 1;
      return [path, objects.toString("utf8", begin, begin + bytes)];
    }),
  );
}

/** Returns the commit to compare with, and its files; undefined in a clone that does not hold it. */
function filesBefore() {
  try {
    const commit = comparedCommit(undefined);
    return { commit, files: filesOf(commit), lock: git(["show", `${commit}:package-lock.json`]) };
  } catch {
    return undefined;
  }
}

function main() {
  const files = filesNow();
  const before = filesBefore();
  const sizes = sizesOf(files, readFileSync(join(root, "package-lock.json"), "utf8"));
  const sizesBefore = before && sizesOf(before.files, before.lock);
  const row = (name: string, ...cells: (number | string)[]) =>
    console.log(name.padEnd(24) + cells.map((cell) => String(cell).padStart(8)).join(""));
  row("", "now", "before");
  for (const [name, size] of sizes) row(name, size, sizesBefore?.get(name) ?? "–");
  console.log(before === undefined ? "before: not in this clone" : `before: ${describeCommit(before.commit)}`);
  const listed = (from: Files): string[] | undefined => {
    const text = from.get(listPath);
    return text && JSON.parse(text);
  };
  const errors = lengthErrors(longFunctions(files), listed(files) ?? [], before && listed(before.files));
  for (const error of errors) console.error(error);
  if (errors.length > 0) process.exitCode = 1;
}

if (import.meta.main) main();
