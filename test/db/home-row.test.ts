import { expect, test } from "vitest";
import { isConnectionLost } from "../../src/db/driver/connection-errors.ts";
import { fromHome, home } from "../../src/db/home-row.ts";
import { transaction } from "../../src/db/transaction.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const { sql } = await testDatabase();

test("a connection that breaks under an insert and the look for its row beside it fails the transaction alone, not the process", async () => {
  const { id } = await testTenant(sql);
  const unhandled: unknown[] = [];
  const keep = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", keep);
  const broken = transaction(sql, async (tx) => {
    const insert = () => tx`
      insert into due_work (tenant_id, kind, due_ms)
      select home.tenant_id, 'none', pg_terminate_backend(pg_backend_pid())::int4 from ${home(tx, id)}`;
    await fromHome(tx, id, insert, true);
  });
  await expect(broken).rejects.toSatisfy(isConnectionLost);
  // What no one takes is told by then.
  await sql`select 1`;
  process.off("unhandledRejection", keep);
  expect(unhandled).toEqual([]);
});
