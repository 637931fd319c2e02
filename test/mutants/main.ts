/**
 * `npm run mutants [-- words …]`: plants each mutant whose name, file or tests have one of the words, all without words, into a copy of this
 * checkout, and runs its test files. Exits with 1 when one stays unseen.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Mutant, mutants } from "./mutants.ts";

const root = new URL("../..", import.meta.url).pathname;

/** Copies what git knows or would add, with what is not committed. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), "belfry-mutants-"));
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const paths = `${listed}`.split("\0").filter((path) => existsSync(join(root, path)) && path !== "");
  for (const path of paths) cpSync(join(root, path), join(copy, path));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Runs test files in the copy up to the first failure, and returns what failed: tests, or what else kept them from running. */
async function run(copy: string, files: readonly string[]): Promise<{ tests: string[]; other: string }> {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--bail", "1", "--reporter", "json", "--outputFile", report];
  // `retry` is for CI, where this does not run.
  const env = { ...process.env, CI: undefined };
  const child = spawn(process.execPath, [...vitest, ...files], { cwd: copy, env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-4000);
  });
  const [code] = await once(child, "close");
  const { testResults = [] } = readReport(report);
  const tests = testResults.flatMap(({ assertionResults }) =>
    assertionResults.flatMap(({ status, fullName }) => (status === "failed" ? [fullName] : [])),
  );
  const messages = testResults.flatMap(({ message }) => (message === "" ? [] : [message]));
  return { tests, other: code === 0 || tests.length > 0 ? "" : [...messages, said].join("\n") };
}

interface Report {
  testResults?: { message: string; assertionResults: { status: string; fullName: string }[] }[];
}

function readReport(path: string): Report {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return {};
  }
}

/** Plants a mutant for the time of its test. Returns the test that saw it; undefined: none did. */
async function seenBy(copy: string, { file, text, replacement, tests: files }: Mutant): Promise<string | undefined> {
  const path = join(copy, file);
  const whole = readFileSync(path, "utf8");
  const [before, after, ...more] = whole.split(text);
  if (after === undefined || more.length > 0) throw new Error(`${file}: ${text} does not occur once`);
  writeFileSync(path, before + replacement + after);
  try {
    const { tests, other } = await run(copy, files);
    if (other !== "") console.error(other);
    return tests[0];
  } finally {
    writeFileSync(path, whole);
  }
}

const words = process.argv.slice(2);
const chosen = mutants.filter(({ name, file, tests }) =>
  words.length === 0 ? true : words.some((word) => [name, file, ...tests].some((text) => text.includes(word))),
);
const copy = copyCheckout();
let unseen = 0;
try {
  // A test that is red without a mutant would see none.
  const { tests, other } = await run(copy, [...new Set(chosen.flatMap((mutant) => mutant.tests))]);
  if (tests.length > 0 || other !== "") throw new Error(`red without a mutant: ${tests.join(", ")}${other}`);
  for (const mutant of chosen) {
    const startMs = performance.now();
    const test = await seenBy(copy, mutant);
    if (test === undefined) unseen += 1;
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    console.log(
      `${test === undefined ? "NOT CAUGHT" : "caught"}: ${mutant.name} (${mutant.file}, ${seconds} s), by: ${test}`,
    );
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
console.log(`${chosen.length - unseen} of ${chosen.length} mutants caught`);
process.exitCode = unseen > 0 || chosen.length === 0 ? 1 : 0;
