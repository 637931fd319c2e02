import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { columnKeys, toOccurrence, toRow } from "../../src/events/columns.ts";
import type { Occurrence } from "../../src/events/lifecycle.ts";
import { occurrences } from "../../src/events/tables.ts";

const root = new URL("../..", import.meta.url).pathname;

test("the columns of an occurrence are those of its table, and an occurrence is the same after its row", () => {
  const occurrence = Object.fromEntries(columnKeys.map((key, i) => [key, i])) as unknown as Occurrence;
  const row = toRow(Buffer.alloc(20), occurrence);
  const names = columnKeys.map((key) => [occurrences[key].name, occurrence[key]]);
  expect({ ...row }).toEqual({ event_id: Buffer.alloc(20), ...Object.fromEntries(names) });
  expect(toOccurrence(row)).toEqual(occurrence);
});

test.each(["keptOpenMs|kept_open_ms", "closedBy|closed_by"])(
  "a new column of an occurrence touches few files: %s",
  (names) => {
    const files = globSync("src/**/*.ts", { cwd: root }).filter((path) =>
      new RegExp(`\\b(?:${names})\\b`).test(readFileSync(root + path, "utf8")),
    );
    expect(files).toContain("src/events/columns.ts");
    expect(files.length).toBeLessThanOrEqual(6);
  },
);
