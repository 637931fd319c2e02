import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { WatchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { watchHub } from "../../src/events/watch/watch-hub.ts";
import { watchEvents } from "../../src/events/watch/watch-stream.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { sql } = server.database;
const { signal } = new AbortController();

test("a watch that ends before it follows the feed leaves nothing behind", async () => {
  const { id } = await testTenant(sql);
  const following = watchHub(sql);
  const watch = watchEvents(sql, following, id, create(WatchEventsRequestSchema), signal);
  await watch.next();
  expect(following.stats()).toEqual({ tenants: 1, watchers: 0 });
  await watch.return(undefined);
  expect(following.stats()).toEqual({ tenants: 0, watchers: 0 });
  following.stop();
});

test("what waits for a client that takes nothing is bounded by its bytes, too", async () => {
  const { id, headers } = await testTenant(sql);
  const following = watchHub(sql);
  const watch = watchEvents(sql, following, id, create(WatchEventsRequestSchema), signal);
  await watch.next();
  const first = watch.next();
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  const put = (from: number, count: number) =>
    receiver.putEvents({
      events: Array.from({ length: count }, (_, i) => ({
        name: `event ${from + i}`,
        timestamp: BigInt(Date.now()),
        dimensions: { source: "a" },
        metadataFields: { text: "x".repeat(60_000) },
      })),
    });
  await put(0, 1);
  await first;
  for (let from = 1; from <= 400; from += 100) await put(from, 100);
  const [row] = await sql<[{ position: bigint }]>`select max(position) as position from feed where tenant_id = ${id}`;
  await expect.poll(() => following.toldUpTo(id)?.position).toBe(row.position);
  await expect(watch.next()).rejects.toMatchObject({ code: Code.ResourceExhausted });
  expect(following.stats()).toEqual({ tenants: 0, watchers: 0 });
  following.stop();
}, 60_000);
