import { expect, test } from "vitest";
import type { Db } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { storingChanges } from "../../src/events/changes.ts";
import { type EventItem, ingestEvents } from "../../src/events/ingest.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const { sql, pool } = await testDatabase();
const store = storingChanges({});
const hosts = 4000;
const portion = 1000;

/** Each host sends another event a minute. */
const batch = (round: number): EventItem[] =>
  Array.from({ length: portion }, (_, i) => {
    const host = (round * portion + i) % hosts;
    const timeMs = BigInt(1_700_000_000_000 + Math.floor((round * portion) / hosts) * 60_000);
    return {
      name: "down",
      dimensions: { source: `host-${host}` },
      timeMs,
      severity: 3,
      status: 1,
      type: "",
      summary: "",
      body: "",
      metadata: {},
    } as unknown as EventItem;
  });

/** Rows of tables and entries of indexes that this connection has read. */
async function rowsRead(tx: Db): Promise<number> {
  const [read] = await tx<[{ rows: number }]>`
    select sum(pg_stat_get_xact_tuples_returned(oid))::float8 as rows from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'i')`;
  return read.rows;
}

test("a fresh database whose tables nobody has analysed reads a batch's own rows, however many there are by then", async () => {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
  for (const { name } of tables) await sql.unsafe(`alter table "${name}" set (autovacuum_enabled = false)`);
  const { id } = await testTenant(sql);
  const readRows: number[] = [];
  for (let round = 0; round < 12; round++) {
    const rows = await transaction(pool.ingest, async (tx) => {
      const before = await rowsRead(tx);
      await ingestEvents(tx, id, batch(round), { nowMs: 1_700_000_000_000, store });
      return (await rowsRead(tx)) - before;
    });
    readRows.push(rows);
  }
  // Five to six for each event; a plan that reads the tenant's rows takes thousands.
  expect(Math.max(...readRows)).toBeLessThan(8 * portion);
});
