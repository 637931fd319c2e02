// Makes gen/ from proto/. With --check it changes nothing: it looks at form and lint of proto/ and at whether the last release
// would break, names every file of gen/ that is not what proto/ makes, and fails when there is anything to say.
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { printProto } from "./print-proto.ts";

const root = resolve(import.meta.dirname, "..");
const committed = join(root, "gen");
const check = process.argv.includes("--check");
const scratch = mkdtempSync(join(tmpdir(), "belfry-generate-"));
const made = join(scratch, "gen");
// What the last release promised, written by `buf build proto -o proto/released.binpb` when it is made. None before the first.
const released = "proto/released.binpb";

try {
  if (check) {
    buf("format", "proto", "--diff", "--exit-code");
    buf("lint");
    if (existsSync(join(root, released))) buf("breaking", "proto", "--against", released);
  }
  const printed = "buf/validate/validate.proto";
  write(made, printed, printProto(file_buf_validate_validate.proto));
  if (!check) write(committed, printed, readFileSync(join(made, printed), "utf8"));
  buf("generate", "--template", "buf.gen.yaml", "-o", scratch);
  if (!check) sync((path) => path.endsWith("_pb.ts"));
  // The plugin runs on the messages in gen/, so those have to be right first.
  if (differences().every(([path]) => !path.endsWith("_pb.ts"))) {
    buf("generate", "--template", "buf.gen.routes.yaml", "-o", scratch);
    if (!check) sync(() => true);
  }
  const stale = differences();
  for (const [path, how] of stale) console.error(`gen/${path}: ${how}`);
  if (stale.length > 0) throw new Error("gen/ is not what proto/ makes: run npm run generate and commit gen/");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true });
}

function buf(...args: string[]): void {
  const path = `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH}`;
  execFileSync("buf", args, { cwd: root, stdio: "inherit", env: { ...process.env, PATH: path } });
}

/** Every file that differs between gen/ and what was made, and how. */
function differences(): [path: string, how: string][] {
  const wanted = new Set(files(made));
  const found = new Set(files(committed));
  const stale: [string, string][] = [];
  for (const path of wanted) {
    if (!found.has(path)) stale.push([path, "is missing"]);
    else if (readFileSync(join(made, path), "utf8") !== readFileSync(join(committed, path), "utf8"))
      stale.push([path, "differs"]);
  }
  for (const path of found) if (!wanted.has(path)) stale.push([path, "is made by nothing"]);
  return stale;
}

/** Leaves what is equal alone, so that whatever reads gen/ meanwhile finds it whole. */
function sync(remove: (path: string) => boolean): void {
  for (const [path, how] of differences()) {
    if (how !== "is made by nothing") write(committed, path, readFileSync(join(made, path), "utf8"));
    else if (remove(path)) rmSync(join(committed, path));
  }
}

function files(directory: string): string[] {
  return globSync("**/*.*", { cwd: directory })
    .filter((path) => !path.endsWith("/"))
    .sort();
}

function write(directory: string, path: string, text: string): void {
  mkdirSync(dirname(join(directory, path)), { recursive: true });
  writeFileSync(join(directory, path), text);
}
