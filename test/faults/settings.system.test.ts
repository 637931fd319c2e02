import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import type { Batch } from "./ledger.ts";
import { batches, sender } from "./load.ts";
import { random, seedOf } from "./random.ts";

const seed = seedOf(17);

/** The same items in the same order, in requests of at most this many. */
function recut(all: Batch[], itemsMax: number): Batch[] {
  const cut: Batch[] = [];
  for (const item of all.flatMap((batch) => batch.items.map((each) => ({ ...batch, items: [each] }) as Batch))) {
    const last = cut.at(-1);
    if (last?.kind === item.kind && last.items.length < itemsMax) last.items.push(...(item.items as never[]));
    else cut.push(item);
  }
  return cut;
}

const settings = [
  { what: "hardly a connection for each kind of work, item by item, over gRPC", pools: ["5"], itemsMax: 1, client: 0 },
  { what: "many connections, in large requests, over JSON", pools: ["16"], itemsMax: 1000, client: 4 },
  { what: "two servers in turn, over gRPC-Web", pools: ["5", "6"], itemsMax: 7, client: 1 },
  { what: "as the client sent them, over Connect", pools: ["8"], itemsMax: undefined, client: 2 },
];

/** What is stored in the end, by names: ids hold the tenant. What a deleted entity was called depends on the requests. */
async function playWith({ pools, itemsMax, client }: (typeof settings)[number], sent: Batch[]) {
  const [first, ...more] = pools;
  const server = await testServer({ BELFRY_POOL_CONNECTIONS_MAX: first as string });
  const { sql, url } = server.database;
  const urls = [server.url];
  for (const pool of more) {
    urls.push((await testServer({ DATABASE_URL: url, BELFRY_POOL_CONNECTIONS_MAX: pool })).url);
  }
  const { id, headers } = await testTenant(sql);
  const senders = urls.map((each) => sender(client, each, headers));
  for (const [i, batch] of (itemsMax === undefined ? sent : recut(sent, itemsMax)).entries()) {
    expect(await senders[i % senders.length]?.(batch)).toBe(batch.items.length);
  }
  const entities = await sql`
    select dimensions, case when deleted_ms is null then name end as name,
      case when deleted_ms is null then metadata end as metadata, deleted_ms, liveness_ms
    from entities where tenant_id = ${id} order by dimensions::text`;
  const occurrences = await sql`
    select n.dimensions, e.name, e.dedup_key, o.expires_ms, o.number, o.severity, o.status, o.acknowledged, o.summary, o.start_ms, o.last_seen_ms,
      o.end_ms, o.instance_count
    from occurrences o join events e on e.tenant_id = ${id} and e.id = o.event_id
      join entities n on n.tenant_id = ${id} and n.id = e.entity_id
    where o.tenant_id = ${id} order by n.dimensions::text, e.name, e.dedup_key, o.number`;
  return { entities: [...entities], occurrences: [...occurrences] };
}

test(`the same items leave the same behind, whatever the settings (SEED=${seed})`, async () => {
  const next = batches(0, random(seed));
  const sent = Array.from({ length: 30 }, next);
  const [reference, ...others] = settings;
  const expected = await playWith(reference as never, sent);
  expect(expected.occurrences.length).toBeGreaterThan(10);
  for (const each of others) expect(await playWith(each, sent), each.what).toEqual(expected);
});
