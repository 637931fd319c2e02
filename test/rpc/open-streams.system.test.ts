import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Principal } from "../../src/auth/principal.ts";
import { unauthenticated } from "../../src/errors.ts";
import { openStreams } from "../../src/rpc/open-streams.ts";
import { protocols, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const thrown = (call: Promise<unknown>) => call.then(() => expect.fail("it succeeded"), ConnectError.from);

/** Messages until the stream is over. */
async function* endless() {
  for (;;) {
    yield { event: { case: "canonical" as const, value: { name: "a" } } };
    await sleep(50);
  }
}

describe.each(protocols)("over %s", (protocol) => {
  test("a key that is revoked ends its open streams, with code 16", async () => {
    const { headers, id } = await testTenant(server.database.sql);
    const way = transport(server.target, protocol, headers);
    const watch = (async () => {
      for await (const _ of createClient(EventQueryService, way).watchEvents({ query: {} }));
    })();
    const put = protocol === "grpc" ? createClient(DataReceiverService, way).putEvent(endless()) : undefined;
    await sleep(300);
    const ends = Promise.all([thrown(watch), put && thrown(put)]);
    await server.database.sql`delete from api_keys where tenant_id = ${id}`;
    for (const error of await ends) if (error !== undefined) expect(error.code).toBe(Code.Unauthenticated);
  });
});

const principal = { tenantId: "t", keyId: "k", clientType: "USER", role: "manager" } as Principal;
const watchEvents = EventQueryService.method.watchEvents;
const putEvent = DataReceiverService.method.putEvent;
const never = new Promise<never>(() => {});
const { signal } = new AbortController();

test("a client that may no longer call the RPC is cut off from its streams", async () => {
  let now = principal;
  const streams = openStreams(() => now, 10);
  const stream = streams.begin(watchEvents, "key", {}, signal);
  const ended = thrown(stream.until(never));
  now = { ...principal, clientType: "DATA_INGEST", role: null } as Principal;
  expect(await ended).toMatchObject({ code: Code.Unauthenticated });
});

test("while the database is away streams go on", async () => {
  let refusal: Error = new Error("away");
  const streams = openStreams(() => Promise.reject(refusal), 10);
  const stream = streams.begin(putEvent, "key", {}, signal);
  const ended = thrown(stream.until(never));
  await sleep(500);
  refusal = unauthenticated("revoked");
  expect((await ended).rawMessage).toBe("revoked");
});

test("they are bounded in number; a key leaves room for others", () => {
  const streams = openStreams(() => principal, 100);
  let open = 0;
  const begin = (who: object) => streams.begin(putEvent, "key", who, signal);
  expect(() => {
    for (; open < 100; open += 1) begin({ tenant: "t", key: "k" });
  }).toThrow(expect.objectContaining({ code: Code.ResourceExhausted }));
  expect(open).toBeLessThan(95);
  begin({ tenant: "other", key: "o" }).close();
});

test("a server that stops ends those that answer with code 14 at once, and begins none", async () => {
  const streams = openStreams(() => principal, 10);
  const answering = thrown(streams.begin(watchEvents, "key", {}, signal).until(never));
  const sending = streams.begin(putEvent, "key", {}, signal).until(sleep(300, "sent"));
  streams.endAnswering();
  expect(await answering).toMatchObject({ code: Code.Unavailable });
  expect(await sending).toBe("sent");
  expect(() => streams.begin(watchEvents, "key", {}, signal)).toThrow(
    expect.objectContaining({ code: Code.Unavailable }),
  );
});
