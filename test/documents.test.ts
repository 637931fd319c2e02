import { describe, expect, test } from "vitest";
import { settingsHelp } from "../src/config.ts";
import { documentRules } from "./support/document-rules.ts";
import { readTree } from "./support/tree.ts";

const tree = readTree(new URL("..", import.meta.url).pathname);

describe.each(documentRules)("$guarantee", ({ broken, violations }) => {
  test("in this tree", () => {
    expect(violations(tree)).toEqual([]);
  });

  test("a tree that breaks it is found", () => {
    expect(violations(new Map(Object.entries(broken))).length).toBeGreaterThan(0);
  });
});

describe("docs/operations.md", () => {
  test("lists every setting with its default, in the order of --help", () => {
    const rows = [...(tree.get("docs/operations.md") ?? "").matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]*)`|–) \|/gm)];
    const settings = settingsHelp()
      .split("\n")
      .map((line) => line.trim().split(/\s+/));
    expect(rows.map(([, name, fallback]) => [name, fallback ?? "(none)"])).toEqual(
      settings.map(([name, fallback]) => [name, fallback]),
    );
  });
});
