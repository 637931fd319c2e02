import { randomBytes, randomUUID } from "node:crypto";
import { loadModule } from "libpg-query";
import { expect, inject, test } from "vitest";
import { sessionName } from "../src/db/session-name.ts";
import { testDatabase } from "./support/database.ts";
import { ourStatements, plain } from "./support/our-statements.ts";
import { described, growingStatements } from "./support/plan-scenarios.ts";
import { distributedTables } from "./support/schema-rules.ts";
import { brokenRules, statementExceptions } from "./support/statement-exceptions.ts";
import { type RanStatement, readStatements } from "./support/statement-log.ts";
import { statementFaults } from "./support/statement-rules.ts";
import { wholeRanges } from "./support/whole-ranges.ts";

const ours = ourStatements(readStatements(inject("statements")));
const statements = ours.filter(
  ({ text, parameters }) =>
    parameters !== undefined && /^\s*(?:select|with|insert|update|delete)\b/i.test(text) && /tenant_id/.test(text),
);
/** Held to nothing but to be found, or not. */
const controls: Record<"range" | "named", RanStatement> = {
  range: control("select id, name from entities where tenant_id = $1 and deleted_ms is null", []),
  // As many ids as the parameters that are written down may have.
  named: control(
    "select id, name from entities where tenant_id = $1 and id = any($2)",
    Array.from({ length: 210 }, idOf),
  ),
};
function control(text: string, ids: string[]): RanStatement {
  const parameters = [randomUUID(), ...(ids.length > 0 ? [`{${ids.join(",")}}`] : [])];
  return { text, file: "controls", connections: [sessionName("ingest")], parameters, types: parameters.map(() => 0) };
}
function idOf() {
  return `"\\\\x${randomBytes(20).toString("hex")}"`;
}

const isWhole = (text: string) => wholeRanges.some(({ begin }) => begin.test(plain(text)));

const whole = inject("statementsWhole");
if (!whole) console.warn("statements are not judged: npm test, run whole before this, leaves what its files send");

test.runIf(whole)(
  "no statement reads more where a tenant has more rows, whatever PostgreSQL knows of them",
  { timeout: 1_800_000 },
  async () => {
    expect(statements.length).toBeGreaterThan(100);
    const held = statements.filter(({ text }) => !isWhole(text));
    // Nothing else runs now: half of them on each of two databases takes half as long.
    const halves = await Promise.all(
      [0, 1].map(async (half) => {
        const { url, sql } = await testDatabase({ statementTimeoutMs: 120_000 });
        return await growingStatements(url, sql, [
          ...Object.values(controls),
          ...held.filter((_, i) => i % 2 === half),
        ]);
      }),
    );
    const growing = halves.flatMap((half) => half.growing);
    expect(growing.filter(({ statement }) => statement !== controls.range).map(described)).toEqual([]);
    expect(growing.map(({ statement }) => statement)).toContain(controls.range);
    // Else nothing was held to anything.
    for (const { measured } of halves) expect(measured).toBeGreaterThan(50);
  },
);

test.runIf(whole)("each statement that may read a whole range was run", () => {
  const idle = wholeRanges.filter(({ begin }) => !statements.some(({ text }) => begin.test(plain(text))));
  expect(idle.map(({ begin, why }) => `none of our statements: ${begin} (${why})`)).toEqual([]);
});

test.runIf(whole)("no statement of either tier breaks a rule without a reason, and each reason is needed", async () => {
  const { sql, drop } = await testDatabase();
  const distributed = await distributedTables(sql);
  await drop();
  await loadModule();
  expect(brokenRules(ours, distributed)).toEqual([]);
  const idle = statementExceptions.filter(
    ({ begin, fault }) =>
      !ours.some(
        ({ text }) =>
          plain(text).startsWith(begin) && statementFaults(text, distributed).some((each) => fault.test(each)),
      ),
  );
  expect(idle).toEqual([]);
});
