import { setTimeout as sleep } from "node:timers/promises";
import { create, fromJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { EventQuerySchema, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { changedRows } from "../../src/events/watch/feed-reader.ts";
import { watchFilter } from "../../src/events/watch/filter.ts";
import { pastReader } from "../../src/events/watch/past.ts";
import { messageQueue } from "../../src/events/watch/queue.ts";
import type { Told } from "../../src/events/watch/shared-messages.ts";
import { watchHub } from "../../src/events/watch/watch-hub.ts";
import { type Protocol, protocols, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { sql } = server.database;
const [WARNING, ERROR] = [3, 4] as const;

const { signal } = new AbortController();
const pace = () => undefined;

const batch = (name: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    name: `${name}/${i}`,
    dimensions: { source: `host ${i % 7}` },
    timestamp: BigInt(Date.now()),
    severity: i % 2 === 0 ? WARNING : ERROR,
    body: "x".repeat(1000),
  }));

test("watches that begin, end and resume while batches are told each see every change once, in order, over every protocol", async () => {
  const { headers } = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  const total = 8 * 150;
  let stored = 0;

  /** Watches until it has seen all changes of these severities; ends now and then, and goes on from its cursor. */
  async function watch(protocol: Protocol, severities: (typeof WARNING | typeof ERROR)[], every: number) {
    const client = createClient(EventQueryService, transport(server.target, protocol, headers));
    const names: string[] = [];
    let cursor = "";
    const wanted = severities.length === 1 ? total / 2 : total;
    while (names.length < wanted) {
      const abort = new AbortController();
      let left = every;
      for await (const message of client.watchEvents({ query: { severities }, cursor }, { signal: abort.signal })) {
        cursor = message.cursor;
        begun();
        if (message.event !== undefined) names.push(message.event.name ?? "");
        if (message.event !== undefined) left -= 1;
        if (left === 0 || names.length >= wanted) break;
      }
      abort.abort();
    }
    return names;
  }
  let waiting = 12;
  const all = Promise.withResolvers<void>();
  const begun = () => {
    waiting -= 1;
    if (waiting === 0) all.resolve();
  };
  const watches = Array.from({ length: 12 }, (_, i) => {
    const severities = [[], [WARNING], [ERROR]][i % 3] as (typeof WARNING | typeof ERROR)[];
    return watch(protocols[i % protocols.length] as Protocol, severities, i < 4 ? total + 1 : 40 + i * 13);
  });
  await all.promise;
  for (; stored < total; stored += 150) {
    await receiver.putEvents({ events: batch(String(stored).padStart(5, "0"), 150) });
    await sleep(5);
  }
  const feed = await Promise.all(watches);
  const [everything, warnings, errors] = feed as [string[], string[], string[]];
  expect(new Set(everything).size).toBe(total);
  expect(everything.filter((name) => Number(name.split("/")[1]) % 2 === 0)).toEqual(warnings);
  expect(everything.filter((name) => Number(name.split("/")[1]) % 2 === 1)).toEqual(errors);
  for (const [i, names] of feed.entries()) expect(names).toEqual(feed[i % 3]);
}, 60_000);

test("watches that resume from the same place share what is read and made", async () => {
  const { id: tenantId, headers } = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  await receiver.putEvents({ events: batch("a", 100) });
  const past = pastReader(sql);
  const end = past.begin(tenantId);
  const start = { position: 0n, createdMs: 0n, passed: 0 };
  const [[row], [same]] = await Promise.all([past.rows(tenantId, start), past.rows(tenantId, start)]);
  if (row === undefined) throw new Error("the feed is empty");
  expect(same).toBe(row);
  const query = { tenantId, digest: Buffer.alloc(32), filter: watchFilter(tenantId, create(EventQuerySchema)) };
  const portions = await Promise.all([past.portion(tenantId, row, 0, signal), past.portion(tenantId, row, 17, signal)]);
  const [[one], [other]] = (await Promise.all(portions.map((portion) => portion.told(query, pace)))) as [
    Told[],
    Told[],
  ];
  expect(one).toBe(other);
  if (one === undefined) throw new Error("nothing is told");
  expect(portions[0]?.message(one)).toBe(portions[1]?.message(one));
  for (const portion of portions) portion.release();
  end();
});

test("a change is judged by a large clause in slices", async () => {
  const { id: tenantId, headers } = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  await receiver.putEvents({ events: batch("a", 1) });
  const past = pastReader(sql);
  const [row] = await past.rows(tenantId, { position: 0n, createdMs: 0n, passed: 0 });
  const [changed] = await changedRows(sql, tenantId, row?.changes ?? []);
  if (changed === undefined) throw new Error("nothing has changed");
  const clauses = [...Array(900).keys()].map((i) => ({
    filter: { field: "body", operation: "OP_CONTAINS", value: i === 899 ? "xx" : `xx${i}` },
  }));
  const { matches } = watchFilter(tenantId, fromJson(EventQuerySchema, { clause: { or: { clauses } } }));
  let paces = 0;
  const found = await matches(changed, () => {
    paces += 1;
    return undefined;
  });
  expect({ found, paces }).toEqual({ found: true, paces: 900 });
});

test("a watch that comes while changes are told and leaves before it is told leaves nothing behind", async () => {
  const { id: tenantId, headers } = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  const following = watchHub(sql);
  const end = following.begin(tenantId);
  await following.open(tenantId);
  const filter = watchFilter(tenantId, create(EventQuerySchema));
  const after = { position: 0n, createdMs: 0n, passed: 0 };
  /** A watch whose filter waits until it may go on. */
  function join(name: string) {
    const asked = Promise.withResolvers<void>();
    const goes = Promise.withResolvers<boolean>();
    const matches = () => {
      asked.resolve();
      return goes.promise;
    };
    const queue = messageQueue(signal, following.heldOf(tenantId));
    const digest = Buffer.alloc(32, name);
    const leave = following.add({ tenantId, digest, filter: { ...filter, matches } }, { after, queue });
    return { asked: asked.promise, go: () => goes.resolve(true), leave, queue };
  }
  const early = join("a");
  await receiver.putEvents({ events: batch("a", 1) });
  await early.asked;
  const late = join("b");
  early.go();
  await late.asked;
  late.leave();
  late.queue.end();
  late.go();
  await expect.poll(() => following.toldUpTo(tenantId)?.position).toBe(1n);
  expect(await early.queue.next(1000, pace)).toBeDefined();
  expect(following.stats()).toEqual({ tenants: 1, watchers: 1 });
  expect(following.heldOf(tenantId).bytes).toBe(0);
  early.leave();
  end();
  following.stop();
});
