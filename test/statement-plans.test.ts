import { expect, inject, test } from "vitest";
import { testDatabase } from "./support/database.ts";
import { ourStatements, plain } from "./support/our-statements.ts";
import { described, growingStatements } from "./support/plan-scenarios.ts";
import { readStatements } from "./support/statement-log.ts";
import { wholeRanges } from "./support/whole-ranges.ts";

const statements = ourStatements(readStatements(inject("statements"))).filter(
  ({ text, parameters }) =>
    parameters !== undefined && /^\s*(?:select|with|insert|update|delete)\b/i.test(text) && /tenant_id/.test(text),
);
const isWhole = (text: string) => wholeRanges.some(({ begin }) => begin.test(plain(text)));

test("no statement reads more where a tenant has more rows, whatever PostgreSQL knows of them", async () => {
  expect(statements.length, "the run is not whole: statements of ours that other files have sent").toBeGreaterThan(100);
  const held = statements.filter(({ text }) => !isWhole(text));
  // Nothing else runs now: half of them on each of two databases takes half as long.
  const halves = await Promise.all(
    [0, 1].map(async (half) => {
      const { url, sql } = await testDatabase({ statementTimeoutMs: 120_000 });
      return await growingStatements(
        url,
        sql,
        held.filter((_, i) => i % 2 === half),
      );
    }),
  );
  expect(halves.flatMap(({ growing }) => growing.map(described))).toEqual([]);
  // Else nothing was held to anything.
  for (const { measured } of halves) expect(measured).toBeGreaterThan(50);
}, 180_000);

test("each statement that may read a whole range was run", () => {
  const idle = wholeRanges.filter(({ begin }) => !statements.some(({ text }) => begin.test(plain(text))));
  const said = idle.map(
    ({ begin, why }) => `the run is not whole, or this is none of our statements: ${begin} (${why})`,
  );
  expect(said).toEqual([]);
});
