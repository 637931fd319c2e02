import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Db } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { storingChanges } from "../../src/events/changes.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { ingestEvents } from "../entities/stored.ts";
import { transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const { sql, pool } = await testDatabase();
const store = storingChanges({});
const hosts = 4000;
const portion = 1000;
const batches = 16;

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

/** No table of it is ever analysed. */
async function unanalysed(db: Db): Promise<void> {
  const tables = await db<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
  for (const { name } of tables) await db.unsafe(`alter table "${name}" set (autovacuum_enabled = false)`);
}

test("a fresh database whose tables no one has analysed reads a batch's own rows, however many there are by then", async () => {
  await unanalysed(sql);
  const { id } = await testTenant(sql);
  const readRows: number[] = [];
  for (let round = 0; round < 12; round++) {
    const rows = await transaction(pool.ingest, async (tx) => {
      const before = await rowsRead(tx);
      await ingestEvents(tx, id, batch(round), { nowMs: 1_700_000_000_000, store, known: entityCache() });
      return (await rowsRead(tx)) - before;
    });
    readRows.push(rows);
  }
  // Five to six for each event; a plan that reads the tenant's rows takes thousands.
  expect(Math.max(...readRows)).toBeLessThan(8 * portion);
});

test("four clients that send batches of 16,000 hosts to a fresh server are refused none", async () => {
  // Beside other programs a transaction may take seconds: what waits is not refused then.
  const server = await testServer({ BELFRY_INGEST_WAIT: "60s" });
  await unanalysed(server.database.sql);
  const { headers } = await testTenant(server.database.sql);
  const client = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  const fleet = 16_000;
  let sent = 0;
  async function send() {
    while (sent < batches) {
      const from = sent++ * portion;
      const events = Array.from({ length: portion }, (_, i) => ({
        name: "down",
        dimensions: { source: `host-${(from + i) % fleet}` },
        timestamp: BigInt(Date.now()),
      }));
      const { succeeded } = await client.putEvents({ events });
      expect(succeeded).toBe(portion);
    }
  }
  await Promise.all(Array.from({ length: 4 }, send));
  const [stored] = await server.database.sql`select count(*)::int4 as count from instances`;
  expect(stored?.count).toBe(batches * portion);
});
