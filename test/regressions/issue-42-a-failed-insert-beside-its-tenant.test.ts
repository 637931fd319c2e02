import { expect, test } from "vitest";
import { fromHome, home } from "../../src/db/home-row.ts";
import { transaction } from "../../src/db/transaction.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const { sql } = await testDatabase();

test("an insert that fails beside the look at its tenant's row fails alone, and leaves no rejection unhandled", async () => {
  const { id } = await testTenant(sql);
  const stored = transaction(sql, (tx) =>
    fromHome(
      tx,
      id,
      () => tx`
        insert into due_work (tenant_id, kind, due_ms)
        select home.tenant_id, 'failing', 1 / ${0}::int8 from ${home(tx, id)}`,
      true,
    ),
  );
  await expect(stored).rejects.toThrow("division by zero");
});
