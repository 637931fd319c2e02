import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const batches = 10;
const each = batches * 1000;
const all = BigInt(4 * each);

test("very many repeats of one event over four connections: no error, and the exact number of instances", async () => {
  // On a busy machine batches may wait for longer than agents should.
  const server = await testServer({ BELFRY_INGEST_WAIT: "60s" });
  const tenant = await testTenant(server.database.sql);
  const base = BigInt(Date.now() - 200_000);
  const results = await Promise.all(
    [0, 1, 2, 3].map(async (connection) => {
      const receiver = createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers));
      let succeeded = 0;
      for (let batch = 0; batch < batches; batch++) {
        const first = BigInt((connection * batches + batch) * 1000);
        const events = Array.from({ length: 1000 }, (_, i) => ({
          name: "flaps",
          dimensions: { source: "web-1" },
          timestamp: base + first + BigInt(i),
          severity: Severity.WARNING,
          status: Status.OPEN,
        }));
        succeeded += (await receiver.putEvents({ events })).succeeded;
      }
      return succeeded;
    }),
  );
  expect(results).toEqual([each, each, each, each]);
  const queries = createClient(EventQueryService, transport(server.target, "grpc", tenant.headers));
  const { results: found } = await queries.searchEvents({ query: {} });
  expect(found[0]?.occurrences).toMatchObject([{ instanceCount: all, lastSeen: base + all - 1n, startTime: base }]);
  const { results: counts } = await queries.countEvents({ query: {}, countInstances: true });
  expect(counts.total?.values).toMatchObject([{ count: all }]);
});
