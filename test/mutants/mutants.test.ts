import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mutants } from "./mutants.ts";

const root = new URL("../..", import.meta.url).pathname;

test("each mutant has a name of its own, changes a text that its file holds once, and has files of tests", () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  const stale = mutants.filter(({ file, text, replacement, tests }) => {
    const path = `${root}${file}`;
    const parts = existsSync(path) ? readFileSync(path, "utf8").split(text).length : 0;
    return parts !== 2 || text === replacement || !tests.every((each) => existsSync(`${root}${each}`));
  });
  expect(stale.map(({ name }) => name)).toEqual([]);
});
