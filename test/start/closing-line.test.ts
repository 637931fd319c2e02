import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDir } from "../support/database.ts";

const root = join(import.meta.dirname, "../..");

/** The last lines of a run of tests of their own, in a process of its own. */
function run(tests: string, retry: number) {
  const dir = temporaryDir();
  const config = { globals: true, retry, reporters: "CLOSING" };
  writeFileSync(join(dir, "some.test.mjs"), tests);
  writeFileSync(
    join(dir, "vitest.config.mjs"),
    `import { closingLine } from ${JSON.stringify(join(root, "test/support/closing-line.ts"))};
     export default { test: ${JSON.stringify(config).replace('"CLOSING"', "[closingLine()]")} };`,
  );
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status, stdout } = spawnSync(process.execPath, [vitest, "run", "--root", dir], { encoding: "utf8" });
  return { status, lines: stdout.trim().split("\n") };
}

const tests = `
  let runs = 0;
  describe("a machine that is busy", () => test("fails once", () => expect(++runs).toBe(2)));
  test("passes", () => {});
  test.skip("waits", () => {});
`;

test("a test that fails once and then passes is named with its reason before the closing line, and refuses nothing", () => {
  expect(run(tests, 1)).toEqual({
    status: 0,
    lines: [
      "retried: some.test.mjs > a machine that is busy > fails once: expected 1 to be 2 // Object.is equality",
      "2 passed, 0 failed, 1 skipped",
    ],
  });
});

test("one that fails twice has failed, and is named with its reason", () => {
  expect(run("test('fails', () => expect(1).toBe(2));", 1)).toEqual({
    status: 1,
    lines: ["failed: some.test.mjs > fails: expected 1 to be 2 // Object.is equality", "0 passed, 1 failed"],
  });
});
