import { expect, inject, test } from "vitest";
import { connectOnce } from "../src/db/connect.ts";
import { localTables } from "../src/db/distribution.ts";
import { onCitus } from "./support/citus.ts";
import { testDatabase } from "./support/database.ts";
import { ourStatements, plain } from "./support/our-statements.ts";
import { explained } from "./support/rows-read.ts";
import { readStatements } from "./support/statement-log.ts";
import { testTenant } from "./support/tenant.ts";

/** What is not asked of a tenant's node. */
const others = [
  // The coordinator: tables that lie there alone.
  new RegExp(`^(?:insert into|delete from|select [^(]* from) "?(?:${localTables.join("|")})"? `),
  // Each worker, for the due work of all its tenants (src/jobs/due-lanes.ts).
  /^select tenant_id as "tenantId", kind, due_ms/,
  // All nodes: a table is distributed.
  /^select create_distributed_table\(/,
  // Rows that a test fills all tables with (test/support/tenant-rows.ts).
  /^insert into .* from generate_series\(1, \d+\) n order by 1 on conflict do nothing$/,
];

/** Whether Citus hands a statement to one node and does nothing else: no part of it goes through the coordinator. */
const isOfOneNode = (plan: string) =>
  plan.startsWith("Custom Scan (Citus Adaptive)\n") &&
  plan.includes("Task Count: 1\n") &&
  plan.split("Custom Scan (Citus ").length === 2 &&
  !plan.includes("Distributed Subplan");

test.runIf(onCitus)("each statement about a tenant goes to the tenant's node as a whole", async () => {
  const { sql, url } = await testDatabase();
  const { id } = await testTenant(sql);
  const statements = ourStatements(readStatements(inject("statements"))).filter(
    ({ text, parameters }) =>
      parameters !== undefined &&
      /^\s*(?:select|with|insert|update|delete)\b/i.test(text) &&
      /tenant_id/.test(text) &&
      !others.some((each) => each.test(plain(text))),
  );
  // Else nothing was held to anything.
  expect(statements.length, "statements that other files have sent").toBeGreaterThan(100);
  const connection = connectOnce(url, "test");
  const wrong: string[] = [];
  for (const statement of statements) {
    const plan = await explained(connection.sql, statement, id);
    if (!isOfOneNode(plan)) wrong.push(`${plain(statement.text).slice(0, 300)} (${statement.file}):\n${plan}`);
  }
  await connection.close();
  expect(wrong).toEqual([]);
});
