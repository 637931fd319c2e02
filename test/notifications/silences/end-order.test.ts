import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { transaction } from "../../../src/db/transaction.ts";
import { endSilences, readSilences } from "../../../src/notifications/silences/silences.ts";
import { testDatabase } from "../../support/database.ts";
import { sendingTenant } from "../dispatch.ts";

const statements: string[] = [];
const { sql, pool } = await testDatabase({ debug: (_connection, statement) => void statements.push(statement) });

test("silences that end together lock what they held first, and the tenant's due work once, after it", async () => {
  const nowMs = Date.now();
  const tenant = await sendingTenant({ sql, pool }, "http://127.0.0.1:9", nowMs);
  const later = { dueMs: nowMs + 3_600_000 };
  const ids: string[] = [];
  const held = await tenant.put([later, { event: 1, ...later }]);
  for (const delivery of held) {
    const id = randomUUID();
    ids.push(id);
    await sql`
      insert into silences (tenant_id, id, matchers, parts, canonical, starts_ms, ends_ms, until_resolved, judged, rule_names,
        destination_names, comment, created_by, client_id, client_name, key_prefix, created_ms, updated_ms)
      values (${tenant.id}, ${id}, '{}', '[]', '{}', 0, null, true, true, '{}', '{}', '', '', '', '', '', 0, 0)`;
    await sql`update due_deliveries set silence_id = ${id} where tenant_id = ${tenant.id} and id = ${delivery}`;
  }
  const silences = await readSilences(sql, tenant.id, ids);
  statements.length = 0;
  await transaction(sql, (tx) => endSilences(tx, tenant.id, silences, nowMs));
  const locking = statements.flatMap((text) => /due_work|due_deliveries|silences\b/.exec(text)?.[0] ?? []);
  expect(locking).toEqual(["silences", "silences", "due_deliveries", "due_work"]);
  expect((await tenant.waiting()).map(({ dueMs }) => dueMs)).toEqual([nowMs, nowMs]);
});
