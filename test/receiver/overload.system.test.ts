import { setTimeout as sleep } from "node:timers/promises";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { openProxy } from "../faults/proxy.ts";
import { random } from "../faults/random.ts";
import { codeOf, httpVersions, protocols, raw, transport, unfinished } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const path = "/v1/data-receiver/events";
const rpc = "/belfry.receiver.v1.DataReceiverService/PutEvents";
const event = () => ({ name: "disk full", dimensions: { source: "web-1" }, timestamp: BigInt(Date.now()) });
const jsonBody = () => Buffer.from(JSON.stringify({ events: [{ ...event(), timestamp: String(Date.now()) }] }));

/** All ways to send a batch. */
const ways = [
  ...protocols.flatMap((protocol) => httpVersions.map((version) => ({ protocol, version }))),
  ...httpVersions.map((version) => ({ protocol: "/v1" as const, version })),
].filter(({ protocol, version }) => protocol !== "grpc" || version === "2");

interface Told {
  code: number;
  retryAfter: string | null;
  retryDelayMs: number | undefined;
}

/** What a server says to a batch: the code, and when to send again in both forms. */
async function told(
  url: string,
  headers: Record<string, string>,
  { protocol, version }: (typeof ways)[number],
): Promise<Told | "stored"> {
  if (protocol === "/v1") {
    const request = { path, headers: { ...headers, "content-type": "application/json" }, body: [jsonBody()] };
    const answer = await raw({ url }, version, request);
    if (answer.status === 200) return "stored";
    const body = JSON.parse(answer.body.toString());
    expect(answer.status).toBe(body.code === 8 ? 429 : 503);
    const delay = body.details.find((each: { "@type": string }) => each["@type"].endsWith("RetryInfo"))?.retryDelay;
    return {
      code: body.code,
      retryAfter: String(answer.headers["retry-after"]),
      retryDelayMs: Number.parseFloat(delay) * 1000,
    };
  }
  const client = createClient(DataReceiverService, transport({ url }, protocol, headers, version));
  try {
    await client.putEvents({ events: [event()] });
    return "stored";
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [info] = error.findDetails(RetryInfoSchema);
    const retryDelayMs = info?.retryDelay && durationMs(info.retryDelay);
    return { code: error.code, retryAfter: error.metadata.get("retry-after"), retryDelayMs };
  }
}

describe("many clients that send one event a request", async () => {
  const server = await testServer({ BELFRY_INGEST_WAIT: "10m" }, { statementTimeoutMs: 600_000 });
  const { sql } = server.database;
  const { id, headers } = await testTenant(sql);

  /** Each event has a time of its own: two of the same time would be one. */
  let timeMs = Date.now();

  /** Half of the clients over gRPC, half over `/v1`, on connections of their own; returns how many events were stored. */
  async function stored(clients: number, requests: number) {
    const grpc = Array.from({ length: clients / 2 }, () => transport(server, "grpc", headers));
    const before = (await sql`select from instances where tenant_id = ${id}`).count;
    const overGrpc = grpc.map(async (each) => {
      const { putEvents } = createClient(DataReceiverService, each);
      for (let i = 0; i < requests; i++)
        expect((await putEvents({ events: [{ ...event(), timestamp: BigInt(timeMs--) }] })).succeeded).toBe(1);
    });
    const overJson = Array.from({ length: clients / 2 }, async () => {
      for (let i = 0; i < requests; i++) {
        const body = Buffer.from(JSON.stringify({ events: [{ ...event(), timestamp: String(timeMs--) }] }));
        const request = { path, headers: { ...headers, "content-type": "application/json" }, body: [body] };
        expect((await raw(server, "1.1", request)).status).toBe(200);
      }
    });
    await Promise.all([...overGrpc, ...overJson]);
    return (await sql`select from instances where tenant_id = ${id}`).count - before;
  }

  test("256 of them: none is refused, and all is stored, as with 64", async () => {
    expect(await stored(64, 2)).toBe(64 * 2);
    expect(await stored(256, 2)).toBe(256 * 2);
  });
});

// All at once: what is at the lock is given up after five seconds.
describe("while more comes than can be stored", async () => {
  const server = await testServer(
    { BELFRY_INGEST_WAIT: "500ms" },
    { lockTimeoutMs: 600_000, statementTimeoutMs: 600_000, deadlineMsMax: 600_000 },
  );
  const { sql } = server.database;
  const { headers } = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server, "grpc", headers));
  let release = () => {};
  let stored: Promise<unknown> = Promise.resolve();

  beforeAll(async () => {
    const locked = Promise.withResolvers<void>();
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    void sql.begin(async (tx) => {
      await tx`lock table events in access exclusive mode`;
      locked.resolve();
      await released;
    });
    await locked.promise;
    // One batch is at the lock, and the rest waits longer than it may.
    const put = () => receiver.putEvents({ events: [event()] });
    stored = Promise.all([put(), sleep(200).then(() => Promise.all(Array.from({ length: 8 }, put)))]);
    await sleep(300);
    for (let answer: unknown = "waits"; answer === "waits"; ) {
      answer = await Promise.race([told(server.url, headers, ways[0] as (typeof ways)[number]), sleep(500, "waits")]);
    }
  });

  test.concurrent.each(ways)("$protocol, HTTP/$version, is answered 8 (429), and when to come again", async (way) => {
    const answer = (await told(server.url, headers, way)) as Told;
    expect(answer).toMatchObject({ code: 8, retryAfter: expect.stringMatching(/^[1-9]\d*$/) });
    // As long as what waits will take, and no time that many would come at again together.
    expect(answer.retryDelayMs).toBeGreaterThan(500);
    expect(Number(answer.retryAfter)).toBe(Math.ceil((answer.retryDelayMs as number) / 1000));
  });

  test.concurrent.each(httpVersions)("the answer does not wait for the body, HTTP/%s", async (version) => {
    const types = [
      [path, "application/json", 8],
      [rpc, "application/grpc", 8],
      [rpc, "application/json", "resource_exhausted"],
    ] as const;
    for (const [at, type, code] of types) {
      const request = { path: at, headers: { ...headers, "content-type": type }, body: unfinished() };
      const answer = await raw(server, version, request);
      expect(codeOf(answer)).toBe(code);
    }
  });

  test.concurrent("a stream is refused before it begins, too", async () => {
    async function* two() {
      yield { event: { case: "canonical" as const, value: event() } };
      yield { event: { case: "canonical" as const, value: event() } };
    }
    const code = await receiver.putEvent(two()).then(
      () => 0,
      (error) => ConnectError.from(error).code,
    );
    expect(code).toBe(Code.ResourceExhausted);
  });

  test("reads are answered, and all that was let in is stored once there is room", async () => {
    const answer = await raw(server, "1.1", { method: "GET", path: "/v1/api-clients", headers });
    expect(answer.status).toBe(200);
    release();
    await stored;
    expect(await told(server.url, headers, { protocol: "/v1", version: "1.1" })).toBe("stored");
  });
});

describe("bodies that are held", async () => {
  const KiB = 1024;
  const server = await testServer({}, { bodyBytesMax: 256 * KiB, streamIdleMs: 600_000 });
  const { headers } = await testTenant(server.database.sql);
  const json = { ...headers, "content-type": "application/json" };

  test.each(httpVersions)("are bounded together, over HTTP/%s", async (version) => {
    const first = Buffer.concat([Buffer.from('{"events":['), Buffer.alloc(200 * KiB, 32)]);
    async function* half() {
      yield first;
      await over.promise;
      yield Buffer.from("]}");
    }
    const over = Promise.withResolvers<void>();
    const taken = raw(server, version, { path, headers: json, body: half() });
    // What comes before the half has arrived would be taken, and the half refused.
    await sleep(500);
    // Announced: refused by its head. Not announced: when it has become too much.
    const announced = { ...json, "content-length": String(100 * KiB) };
    for (const [more, all] of [[announced, 100 * KiB] as const, [json, 100 * KiB] as const]) {
      for (const at of [path, rpc]) {
        const request = { path: at, headers: more, body: [Buffer.alloc(all, 32)] };
        const answer = await raw(server, version, request);
        expect([answer.status, answer.headers["retry-after"]]).toEqual([429, "1"]);
      }
    }
    const small = { path, headers: json, body: [jsonBody()] };
    expect((await raw(server, version, small)).status).toBe(200);
    over.resolve();
    expect((await taken).status).toBe(200);
    // The place is free again.
    const large = {
      path,
      headers: json,
      body: [Buffer.from('{"events":['), Buffer.alloc(220 * KiB, 32), Buffer.from("]}")],
    };
    expect((await raw(server, version, large)).status).toBe(200);
  });

  test("a stream holds only what is not stored yet", async () => {
    const wide = { ...event(), body: "x".repeat(8 * KiB) };
    async function* many() {
      for (let i = 0; i < 100; i++) {
        yield { event: { case: "canonical" as const, value: { ...wide, timestamp: wide.timestamp - BigInt(i) } } };
        await sleep(5);
      }
    }
    const client = createClient(DataReceiverService, transport(server, "grpc", headers));
    expect(await client.putEvent(many())).toMatchObject({ succeeded: 100, failed: 0 });
  });
});

describe("while the database is away", async () => {
  const database = await testDatabase();
  const way = await openProxy(database.url, random(1));
  const server = await testServer({ DATABASE_URL: way.url });
  const { headers } = await testTenant(database.sql);
  afterAll(() => way.close().catch(() => undefined));

  beforeAll(async () => {
    expect(await told(server.url, headers, { protocol: "/v1", version: "1.1" })).toBe("stored");
    await way.close();
    const answers = async () => (await raw(server, "1.1", { method: "GET", path: "/readyz" })).status;
    while ((await answers()) !== 503) await sleep(20);
  });

  test.concurrent.each(ways)("$protocol, HTTP/$version, is answered 14 (503), and when to come again", async (way) => {
    expect(await told(server.url, headers, way)).toEqual({ code: 14, retryAfter: "1", retryDelayMs: 1000 });
  });
});
