import { Code, createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { ledger } from "./ledger.ts";
import { load } from "./load.ts";
import { fine, openProxy } from "./proxy.ts";
import { random, seedOf } from "./random.ts";

const seed = seedOf(11);
const database = await testDatabase();
const way = await openProxy(database.url, random(seed));
afterAll(way.close);
const server = await testServer({ DATABASE_URL: way.url });
const { id, headers } = await testTenant(database.sql);
const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));

const dimensions = { source: "web-1" };
const timestamp = BigInt(Date.now());
const events = [0n, 1n, 2n].map((i) => ({
  name: "disk full",
  dimensions,
  timestamp: timestamp + i,
  severity: Severity.ERROR,
  status: i === 1n ? Status.CLOSED : Status.OPEN,
}));

const stored = () =>
  database.sql<{ number: number; count: number }[]>`
    select number, instance_count::int4 as count from occurrences where tenant_id = ${id} order by number`;

describe(`a connection that is cut when the commit has been sent (SEED=${seed})`, () => {
  test("is answered with code 14, though the batch is there; sent again it counts once", async () => {
    way.weather = fine;
    // The key and the connection are known to the server before the way gets bad.
    await receiver.putModels({ models: [{ dimensions, timestamp }] });
    way.weather = { ...fine, cutCommit: 1 };
    await expect(receiver.putEvents({ events })).rejects.toMatchObject({ code: Code.Unavailable });
    // Work of the server's own may commit meanwhile.
    expect(way.cuts.commits).toBeGreaterThan(0);
    way.weather = fine;
    const once = [
      { number: 1, count: 2 },
      { number: 2, count: 1 },
    ];
    await expect.poll(stored).toEqual(once);
    await expect
      .poll(() => receiver.putEvents({ events }).catch((error) => error.code))
      .toMatchObject({ succeeded: 3, failed: 0 });
    expect(await stored()).toEqual(once);
  });

  test("as is one that breaks anywhere else, leaves everything right in the end", async () => {
    const book = ledger();
    const clients = load({ seed, clients: 5, urls: [server.url], headers, ledger: book });
    way.weather = { delayMsMax: 2, cut: 0.01, cutAfter: 0.02, cutCommit: 0.1 };
    clients.go();
    await expect.poll(() => way.cuts.commits + way.cuts.any).toBeGreaterThan(20);
    way.weather = fine;
    await clients.stop();
    const codes = [...clients.refusals.keys()].map((what) => what.split(":", 1)[0]);
    expect(new Set(codes)).toEqual(new Set(["Unavailable"]));
    // The events of the other test were not in this ledger.
    const wrong = await book.compare(database.sql, id);
    expect(wrong.filter((line) => !line.startsWith("stored and never sent"))).toEqual([]);
  });
});
