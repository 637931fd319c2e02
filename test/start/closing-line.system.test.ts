import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDir } from "../support/database.ts";

const root = join(import.meta.dirname, "../..");

/** The last lines of a run of tests of their own, in a process of its own. */
function run(tests: string) {
  const dir = temporaryDir();
  const config = { globals: true, reporters: "CLOSING" };
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

test("a test that fails is named with its reason before the closing line, which counts those that were skipped, too", () => {
  const tests = `
    describe("some", () => test("fails", () => expect(1).toBe(2)));
    test("passes", () => {});
    test.skip("waits", () => {});
  `;
  expect(run(tests)).toEqual({
    status: 1,
    lines: [
      "failed: some.test.mjs > some > fails: expected 1 to be 2 // Object.is equality",
      "1 passed, 1 failed, 1 skipped",
    ],
  });
});
