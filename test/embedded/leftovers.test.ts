import { chownSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lockData } from "../../src/embedded/data-directory.ts";
import { removeLeftovers, temporaryDir } from "../support/database.ts";

function left(folder: string, name: string): string {
  const dir = join(folder, `belfry-test-${name}`);
  mkdirSync(join(dir, "postgres"), { recursive: true });
  writeFileSync(join(dir, "lock"), "");
  return dir;
}

test("a run removes what a killed one has left, and nothing that is in use or is something else", async () => {
  const folder = temporaryDir();
  const [killed, used, target] = [left(folder, "killed"), left(folder, "used"), join(folder, "target")];
  left(target, "");
  symlinkSync(target, join(folder, "belfry-test-link"));
  const lock = lockData(used);
  onTestFinished(() => lock?.release());
  await removeLeftovers(folder);
  expect([killed, used, target].map((dir) => existsSync(dir))).toEqual([false, true, true]);
});

test.skipIf(process.getuid?.() !== 0)("what another account has left is left alone", async () => {
  const folder = temporaryDir();
  const [theirs, lockOnly] = [left(folder, "theirs"), left(folder, "lock-only")];
  chownSync(theirs, 65534, 65534);
  chownSync(join(lockOnly, "lock"), 65534, 65534);
  await removeLeftovers(folder);
  expect(existsSync(theirs)).toBe(true);
});

test("temporary files of tests lie in the directory of their run, which goes with it", () => {
  expect(mkdtempSync(join(tmpdir(), "any-"))).toMatch(/\/belfry-test-[^/]+\/tmp\/any-/);
});
