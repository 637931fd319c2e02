import { Code, type ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { Change, EventQueryService, type WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { sql, url } = server.database;
/** Another server on the same database. */
const other = await testServer({ DATABASE_URL: url, BELFRY_INGEST_WAIT: "1m" });
const [OPEN, CLOSED] = [1, 3] as const;
const [WARNING, ERROR] = [3, 4] as const;
const start = BigInt(Date.now()) - 1_000_000n;

interface World {
  id: string;
  headers: Record<string, string>;
  put(name: string, second: number, rest?: object): Promise<unknown>;
  manage: ReturnType<typeof createClient<typeof EventManagementService>>;
  queries: ReturnType<typeof createClient<typeof EventQueryService>>;
}

async function world(): Promise<World> {
  const tenant = await testTenant(sql);
  const grpc = transport(server.target, "grpc", tenant.headers);
  return {
    id: tenant.id,
    headers: tenant.headers,
    put: (name, second, rest = {}) =>
      createClient(DataReceiverService, grpc).putEvents({
        events: [
          { name, dimensions: { source: "a" }, timestamp: start + BigInt(second) * 1000n, status: OPEN, ...rest },
        ],
      }),
    manage: createClient(EventManagementService, grpc),
    queries: createClient(EventQueryService, grpc),
  };
}

/** A watch that has begun: its messages one by one, those with a cursor alone left out. */
async function watch(
  { headers }: Pick<World, "headers">,
  query: object = {},
  { cursor = "", target = server.target, protocol = "grpc" as "grpc" | "connect" | "grpc-web" } = {},
) {
  const abort = new AbortController();
  const client = createClient(EventQueryService, transport(target, protocol, headers));
  const messages = client.watchEvents({ query, cursor }, { signal: abort.signal })[Symbol.asyncIterator]();
  const first = await messages.next();
  let last: string = first.value?.cursor ?? "";
  return {
    first: first.value as WatchEventsResponse,
    cursor: () => last,
    async next(): Promise<WatchEventsResponse> {
      for (;;) {
        const { value, done } = await messages.next();
        if (done) throw new Error("the watch has ended");
        last = value.cursor;
        if (value.event !== undefined) return value;
      }
    },
    async told(count: number) {
      const found = [];
      for (let i = 0; i < count; i++) {
        const { change, event } = await this.next();
        found.push([kindOf(change), event?.name, event?.occurrences[0]?.status]);
      }
      return found;
    },
    end: () => abort.abort(),
  };
}

const kindOf = (change: Change) => Object.entries(Change).find(([, number]) => number === change)?.[0];

describe("a watch", () => {
  test("begins with a cursor at once, and reports what happens from then on", async () => {
    const tenant = await world();
    await tenant.put("before", 1);
    const events = await watch(tenant);
    expect(events.first).toMatchObject({ change: Change.CHANGE_UNSPECIFIED, cursor: expect.stringMatching(/./) });
    expect(events.first.event).toBeUndefined();
    await tenant.put("a", 2, { severity: ERROR, summary: "broken" });
    await tenant.put("a", 3);
    await tenant.put("a", 4, { status: CLOSED });
    expect((await events.next()).event).toMatchObject({
      name: "a",
      occurrences: [{ summary: "broken", status: OPEN }],
    });
    expect(await events.told(2)).toEqual([
      ["UPDATED", "a", OPEN],
      ["CLOSED", "a", CLOSED],
    ]);
    events.end();
  });

  test("reports what matches before or after a change: an occurrence that ceases to match is reported, too", async () => {
    const tenant = await world();
    const clause = { filter: { field: "name", operation: 1, value: { kind: { case: "stringValue", value: "a" } } } };
    const events = await watch(tenant, { clause, severities: [WARNING] });
    await tenant.put("a", 1, { severity: ERROR });
    await tenant.put("b", 1, { severity: WARNING });
    await tenant.put("a", 2, { severity: WARNING });
    await tenant.put("a", 3, { severity: ERROR });
    await tenant.put("a", 4, { severity: ERROR });
    await tenant.put("a", 5, { severity: WARNING });
    const severities = [];
    for (let i = 0; i < 3; i++) severities.push((await events.next()).event?.occurrences[0]?.severity);
    expect(severities).toEqual([WARNING, ERROR, WARNING]);
    events.end();
  });

  const only = (field: string, operation: number, value: string | number) => {
    const kind = typeof value === "string" ? { case: "stringValue", value } : { case: "numberValue", value };
    return { clause: { filter: { field, operation, value: { kind } } } };
  };
  const [EQUALS, LESS] = [1, 9];
  const second = (seconds: number) => Number(start) + seconds * 1000;

  test.each([
    ["summary", only("summary", EQUALS, "before")],
    ["type", only("type", EQUALS, "before")],
    ["body", only("body", EQUALS, "before")],
    ["metadata", only("metadataFields.k", EQUALS, "before")],
    ["a bare key of the metadata", only("k", EQUALS, "before")],
    ["a key that it did not have", { clause: { noneOf: only("metadataFields.added", EQUALS, 1) } }],
    ["lastSeen", only("lastSeen", LESS, second(2))],
    ["instanceCount", only("instanceCount", EQUALS, 1)],
    ["the end of the time range", { timeRange: { end: start + 2000n } }],
  ])("tells an occurrence that ceases to match by %s, live and from a cursor", async (_what, query) => {
    const tenant = await world();
    const texts = (text: string) => ({ summary: text, type: text, body: text });
    const live = await watch(tenant, query);
    await tenant.put("a", 1, { ...texts("before"), metadataFields: { k: "before" } });
    expect(await live.told(1)).toEqual([["CREATED", "a", OPEN]]);
    const cursor = live.cursor();
    await tenant.put("a", 2, { ...texts("after"), metadataFields: { k: "after", added: 1 } });
    expect(await live.told(1)).toEqual([["UPDATED", "a", OPEN]]);
    await tenant.put("a", 3, texts("later"));
    await tenant.put("b", 1);
    const resumed = await watch(tenant, query, { cursor });
    expect(await resumed.told(1)).toEqual([["UPDATED", "a", OPEN]]);
    live.end();
    resumed.end();
  });

  test.each([
    ["startTime", only("startTime", EQUALS, second(10)), { second: 5 }],
    [
      "endTime",
      // The opening matches, too: the watch has read it before the end, which it would else be seen with.
      {
        clause: {
          anyOf: { clauses: [only("endTime", EQUALS, second(12)).clause, only("lastSeen", LESS, second(11)).clause] },
        },
      },
      { status: OPEN },
    ],
  ])("tells what ceases to match by %s", async (_what, query, { second, status }: { second?: number; status?: 1 }) => {
    const tenant = await world();
    const events = await watch(tenant, query);
    await tenant.put("a", 10, {});
    expect(await events.told(1)).toEqual([["CREATED", "a", OPEN]]);
    if (second !== undefined) {
      await tenant.put("a", second, {});
      expect(await events.told(1)).toEqual([["UPDATED", "a", OPEN]]);
    } else {
      await tenant.put("a", 12, { status: CLOSED });
      const closed = await events.next();
      expect(closed.change).toBe(Change.CLOSED);
      const ids = { eventId: closed.event?.id ?? "", occurrenceId: closed.event?.occurrences[0]?.id ?? "" };
      await tenant.manage.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: status ?? OPEN } }] });
      expect(await events.told(1)).toEqual([["UPDATED", "a", OPEN]]);
    }
    events.end();
  });

  test("reports what management does, shows the fields that are asked for, and nothing of other tenants", async () => {
    const [tenant, stranger] = [await world(), await world()];
    const events = await watch(tenant, { fields: [{ field: "acknowledged" }] });
    await stranger.put("a", 1);
    await tenant.put("a", 1);
    const { event } = await events.next();
    const ids = { eventId: event?.id ?? "", occurrenceId: event?.occurrences[0]?.id ?? "" };
    await tenant.manage.setEventStatus({ statuses: [{ ...ids, acknowledged: true }] });
    const changed = await events.next();
    expect(changed).toMatchObject({ change: Change.UPDATED, event: { occurrences: [{ acknowledged: true }] } });
    expect(changed.event?.name).toBeUndefined();
    events.end();
  });

  test.each(["grpc", "grpc-web", "connect"] as const)("is served over %s", async (protocol) => {
    const tenant = await world();
    const events = await watch(tenant, {}, { protocol });
    await tenant.put("a", 1);
    expect(await events.told(1)).toEqual([["CREATED", "a", OPEN]]);
    events.end();
  });

  test.each([
    ["application/json", /^\{"result":\{"change":"CHANGE_UNSPECIFIED",.*\n\{"result":\{"change":"CREATED"/s],
    [
      "text/event-stream",
      /^data: ?\{"result":\{"change":"CHANGE_UNSPECIFIED".*data: ?\{"result":\{"change":"CREATED"/s,
    ],
  ])("is served over /v1 as %s", async (accept, form) => {
    const tenant = await world();
    const abort = new AbortController();
    const answer = await fetch(`${server.url}/v1/events:watch`, {
      method: "POST",
      headers: { ...tenant.headers, accept, "content-type": "application/json" },
      body: JSON.stringify({ query: {} }),
      signal: abort.signal,
    });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? "";
    await tenant.put("a", 1);
    while (!form.test(text) && text.length < 10_000) text += (await reader?.read())?.value ?? "";
    expect(text).toMatch(form);
    abort.abort();
  });

  test("hears what another server stores, in order and once", async () => {
    const tenant = await world();
    const events = await watch(tenant, {}, { target: other.target });
    for (let i = 1; i <= 20; i++) await tenant.put(`event ${i}`, i);
    const names = (await events.told(20)).map(([, name]) => name);
    expect(names).toEqual(Array.from({ length: 20 }, (_, i) => `event ${i + 1}`));
    events.end();
  });
});

describe("a cursor", () => {
  test("of more events in one batch than are read at once tells each once, in order, from a cursor as well", async () => {
    const made = await world();
    const following = await watch(made);
    const cursor = following.first.cursor;
    const dimensions = { source: "a" };
    const names = Array.from({ length: 600 }, (_, i) => `many ${String(i).padStart(3, "0")}`);
    await createClient(DataReceiverService, transport(server.target, "grpc", made.headers)).putEvents({
      events: names.map((name) => ({ name, dimensions, timestamp: start, status: OPEN })),
    });
    const told = (await following.told(names.length)).map(([, name]) => name);
    expect(new Set(told)).toEqual(new Set(names));
    const again = await watch(made, {}, { cursor });
    expect((await again.told(300)).map(([, name]) => name)).toEqual(told.slice(0, 300));
    again.end();
    const later = await watch(made, {}, { cursor: again.cursor() });
    expect((await later.told(300)).map(([, name]) => name)).toEqual(told.slice(300));
    later.end();
    following.end();
  });

  test("goes on behind each message, in the middle of a batch as well, on any server", async () => {
    const tenant = await world();
    const all = await watch(tenant);
    const grpc = transport(server.target, "grpc", tenant.headers);
    const timestamp = start;
    for (const batch of [["a", "b", "c"], ["d"], ["e", "f"]]) {
      await createClient(DataReceiverService, grpc).putEvents({
        events: batch.map((name) => ({ name, dimensions: { source: "a" }, timestamp, status: OPEN })),
      });
    }
    const seen: [name: string, cursor: string][] = [];
    for (let i = 0; i < 6; i++) {
      const { event, cursor } = await all.next();
      seen.push([event?.name ?? "", cursor]);
    }
    all.end();
    const cursors = [all.first.cursor, ...seen.map(([, cursor]) => cursor)];
    for (const [i, cursor] of cursors.entries()) {
      const rest = await watch(tenant, {}, { cursor, target: i % 2 === 0 ? server.target : other.target });
      const names = [];
      for (let n = i; n < 6; n++) names.push((await rest.next()).event?.name);
      expect(names).toEqual(seen.slice(i).map(([name]) => name));
      rest.end();
    }
  });

  test("of another query or tenant, or damaged, is refused", async () => {
    const [tenant, stranger] = [await world(), await world()];
    const { first, end } = await watch(tenant);
    end();
    const refused = { code: Code.InvalidArgument, message: expect.stringMatching(/cursor/) };
    await expect(watch(stranger, {}, { cursor: first.cursor })).rejects.toMatchObject(refused);
    await expect(watch(tenant, { severities: [ERROR] }, { cursor: first.cursor })).rejects.toMatchObject(refused);
    await expect(watch(tenant, {}, { cursor: `${first.cursor}A` })).rejects.toMatchObject(refused);
  });

  test("whose changes are no longer kept is refused with what to do", async () => {
    const tenant = await world();
    await tenant.put("a", 1);
    const { first, end } = await watch(tenant);
    end();
    await tenant.put("a", 2);
    await sql`delete from feed where tenant_id = ${tenant.id} and position = 1`;
    const error: ConnectError = await watch(tenant, {}, { cursor: first.cursor }).then(
      () => expect.unreachable(),
      (thrown) => thrown,
    );
    expect([error.code, error.rawMessage]).toEqual([
      Code.InvalidArgument,
      expect.stringMatching(/older than the hour/),
    ]);
  });

  test("from before a restored backup is refused: another row has its position", async () => {
    const tenant = await world();
    await tenant.put("a", 1);
    const { first, end } = await watch(tenant);
    end();
    await sql`update feed set created_ms = created_ms + 1 where tenant_id = ${tenant.id}`;
    await expect(watch(tenant, {}, { cursor: first.cursor })).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});

test("resumed watches together see each change once while six writers store, on two servers", async () => {
  const tenant = await world();
  const { first, end } = await watch(tenant);
  end();
  const writers = [server, other].flatMap(({ target }) =>
    [0, 1, 2].map(() => createClient(DataReceiverService, transport(target, "grpc", tenant.headers))),
  );
  const writing = Promise.all(
    writers.map(async (writer, w) => {
      for (let i = 0; i < 15; i++) {
        await writer.putEvents({
          events: [0, 1].map((n) => ({
            name: `${w}/${i}/${n}`,
            dimensions: { source: `s${n}` },
            timestamp: start,
            status: OPEN,
          })),
        });
      }
    }),
  );
  const names: string[] = [];
  let { cursor } = first;
  while (names.length < 180) {
    const part = await watch(tenant, {}, { cursor, target: names.length % 2 === 0 ? server.target : other.target });
    for (let i = 0; i < 17 && names.length < 180; i++) {
      const { event, cursor: behind } = await part.next();
      names.push(event?.name ?? "");
      cursor = behind;
    }
    part.end();
  }
  await writing;
  expect(new Set(names).size).toBe(180);
  const stored = await sql<{ name: string }[]>`select name from events where tenant_id = ${tenant.id}`;
  expect(names.toSorted()).toEqual(stored.map(({ name }) => name).sort());
}, 60_000);

test("a stop of the server ends its watches with 14", async () => {
  const stopping = await testServer({ DATABASE_URL: url });
  const tenant = await world();
  const events = await watch(tenant, {}, { target: stopping.target });
  const ended = events.next().catch((error) => error);
  await stopping.stop();
  expect(await ended).toMatchObject({ code: Code.Unavailable });
});
