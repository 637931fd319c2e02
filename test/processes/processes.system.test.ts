import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { credentialCommand } from "../../src/cli/credentials.ts";
import { readConfig } from "../../src/config/settings.ts";
import { connectOnce } from "../../src/db/connect.ts";
import { codeOf, httpVersions, openHttp2, protocols, type RawRequest, transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { running } from "../support/serving-processes.ts";
import { testTenant } from "../support/tenant.ts";
import { atEachProcess, testMachine } from "./machine.ts";
import { toolRequests } from "./requests.ts";
import { type OpenWatch, watchOver, watchOverJson } from "./watches.ts";

type Http2Connection = ReturnType<typeof openHttp2>;

const database = await testDatabase();
// In place of the pool, whose connections are named like those that are counted below.
await database.pool.close();
const { sql, close } = connectOnce(database.url, "test");
afterAll(close);
const { id: tenantId, headers } = await testTenant(sql);
const masterKey = (id: string) => `${id}:${randomBytes(32).toString("base64")}`;
const [oldKey, newKey] = [masterKey("old"), masterKey("new")];
const keyDir = temporaryDir();
const keyFile = join(keyDir, "keys");
writeFileSync(keyFile, `${oldKey}\n`);
afterAll(() => rmSync(keyDir, { recursive: true, force: true }));

/** What `auto` counts for a process. */
const GiB = 1024 ** 3;
/** Of the machine. */
const limits = { connectionsMax: 96, streamsMax: 84 };
const pool = 5;
const env = {
  DATABASE_URL: database.url,
  BELFRY_MASTER_KEYS: "",
  BELFRY_MASTER_KEYS_FILE: keyFile,
  BELFRY_POOL_CONNECTIONS_MAX: String(pool),
};
const machine = await testMachine({ ...env, TEST_LIMITS: JSON.stringify(limits) });
const { target, metrics, said } = machine;

const json = { "content-type": "application/json" };
const own = { ...json, "sec-fetch-site": "same-origin" };
const post = (path: string, body: object, more: Record<string, string> = headers): RawRequest => ({
  path,
  headers: { ...more, ...json },
  body: [Buffer.from(JSON.stringify(body))],
});
let sent = 0;
const event = (name: string) => {
  sent += 1;
  return {
    name: `${name} ${sent}`,
    dimensions: { source: "web-1" },
    timestamp: BigInt(Date.now()),
    status: Status.OPEN,
  };
};
const lines = () =>
  said()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
const sum = (numbers: number[]) => numbers.reduce((all, each) => all + each, 0);

/** A connection over HTTP/2 to each process, until the end of the test. */
async function connectionToEach() {
  return await atEachProcess(machine, async () => {
    const connection = openHttp2(target);
    onTestFinished(() => void connection.close());
    expect((await connection.send({ method: "GET", path: "/readyz" })).status).toBe(200);
    return connection;
  });
}

describe("each of three processes on one port serves", () => {
  test("every protocol and its streams, and its watches report what the others store", async () => {
    expect(said()).toContain("3 processes serve (BELFRY_PROCESSES).");
    const watches: OpenWatch[] = [];
    onTestFinished(() => watches.forEach((watch) => void watch.end()));
    for (const protocol of protocols) {
      for (const version of protocol === "grpc" ? (["2"] as const) : httpVersions) {
        const ways = await atEachProcess(machine, async () => {
          const way = transport(target, protocol, headers, version);
          watches.push(await watchOver(way));
          return way;
        });
        for (const way of ways) {
          const name = `${protocol} ${version}`;
          const receiver = createClient(DataReceiverService, way);
          const unary = await receiver.putEvents({ events: [event(name)] });
          const events = [1, 2, 3].map(() => ({ event: { case: "canonical" as const, value: event(name) } }));
          const stream = await receiver.putEvent(Readable.from(events));
          expect([unary.succeeded, stream.succeeded], name).toEqual([1, 3]);
        }
      }
    }
    for (const version of httpVersions) {
      for (const accept of ["application/json", "text/event-stream"]) {
        await atEachProcess(machine, async () => {
          watches.push(await watchOverJson(target, version, { ...headers, accept }));
        });
      }
    }
    expect(watches.length).toBeGreaterThanOrEqual(3 * 11);
    for (const connection of await connectionToEach()) {
      const last = event("/v1");
      const body = { events: [{ ...last, timestamp: Number(last.timestamp) }] };
      expect((await connection.send(post("/v1/data-receiver/events", body))).status).toBe(200);
      await Promise.all(watches.map((watch) => watch.heard(last.name)));
    }
    const [stored] = await sql`select count(*)::int4 as count from events where tenant_id = ${tenantId}`;
    expect(stored).toEqual({ count: sent });
  });

  test("what other tools send, whichever of them has its series", async () => {
    const tenant = await testTenant(sql);
    const authorization = `Bearer ${tenant.headers["service-api-key"]}`;
    const connections = await connectionToEach();
    const requests = toolRequests();
    for (const connection of connections) {
      for (const { stores, ...request } of requests) {
        const answer = await connection.send({ ...request, headers: { ...request.headers, authorization } });
        expect([answer.status < 300, codeOf(answer)], `${request.path}: ${answer.body}`).toEqual([true, 0]);
      }
    }
    const names = (kind: "event" | "metric") => requests.flatMap(({ stores }) => stores[kind] ?? []).sort();
    const events = await sql`select name from events where tenant_id = ${tenant.id} order by name collate "C"`;
    expect(events.map(({ name }) => name)).toEqual(names("event"));
    const series = await sql`select metric from series where tenant_id = ${tenant.id} order by metric collate "C"`;
    expect(series.map(({ metric }) => metric)).toEqual(names("metric"));
    for (const connection of connections) {
      const path = `/api/v2/alerts?filter=${encodeURIComponent('alertname="an alert"')}`;
      const { body } = await connection.send({ method: "GET", path, headers: { authorization } });
      expect(JSON.parse(body.toString())).toMatchObject([{ labels: { alertname: "an alert" } }]);
    }
  });

  test("the console; a session of one holds at all, and at none a second after its end or that of its key", async () => {
    const connections = await connectionToEach();
    const [one, two] = connections as [Http2Connection, Http2Connection];
    for (const connection of connections) {
      const page = await connection.send({ method: "GET", path: "/console/" });
      expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    }
    const tenant = await testTenant(sql);
    const path = "/v1/console-sessions";
    async function logIn(): Promise<Record<string, string>> {
      const answer = await one.send(post(path, { key: tenant.headers["service-api-key"] }, own));
      const cookie = answer.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
      return { cookie, "service-session-proof": JSON.parse(answer.body.toString()).pageProof };
    }
    async function statuses(held: Record<string, string>): Promise<number[]> {
      const request = { method: "GET", path: `${path}/current`, headers: { "sec-fetch-site": "same-origin", ...held } };
      return (await Promise.all(connections.map(({ send }) => send(request)))).map(({ status }) => status);
    }
    const [first, second] = [await logIn(), await logIn()];
    for (const held of [first, second]) expect(await statuses(held)).toEqual([200, 200, 200]);
    const end = { method: "DELETE", path: `${path}/current`, headers: { ...own, ...first } };
    expect((await two.send(end)).status).toBe(200);
    await expect.poll(() => statuses(first)).toEqual([401, 401, 401]);
    expect(await statuses(second)).toEqual([200, 200, 200]);
    await sql`delete from api_keys where tenant_id = ${tenant.id}`;
    await expect.poll(() => statuses(second)).toEqual([401, 401, 401]);
  });
});

test("a master key that is added to the file, and made the current one, is taken by each", async () => {
  const seal = async (connection: Http2Connection) => {
    const { headers } = await testTenant(sql);
    const request = { info: { name: "a", type: "teamChat" }, secrets: { token: "secret" } };
    const answer = await connection.send(post("/v1/credentials", request, headers));
    expect(answer.status, answer.body.toString()).toBe(200);
  };
  const keys = () => sql`select distinct master_key_id as id from data_keys`;
  const connections = await connectionToEach();
  for (const connection of connections) await seal(connection);
  expect(await keys()).toEqual([{ id: "old" }]);
  writeFileSync(keyFile, `${newKey}\n${oldKey}\n`);
  await credentialCommand(["credentials", "rotate"], readConfig(env))?.(sql);
  writeFileSync(keyFile, `${newKey}\n`);
  for (const connection of connections) await seal(connection);
  expect(await keys()).toEqual([{ id: "new" }]);
});

describe("the bounds of the machine hold for all three together", () => {
  test("database connections: the pool and two for each, also under load", async () => {
    const connections = await connectionToEach();
    const search = post("/v1/events:search", { query: { pageInput: { limit: 100 } } });
    let going = true;
    const load = connections.flatMap(({ send }) =>
      Array.from({ length: 10 }, async (_, i) => {
        while (going) {
          const { name, dimensions, timestamp } = event(`load ${i}`);
          const events = [{ name, dimensions, timestamp: Number(timestamp) }];
          const answers = await Promise.all([send(search), send(post("/v1/data-receiver/events", { events }))]);
          expect(answers.map(({ status }) => status)).toEqual([200, 200]);
        }
      }),
    );
    let most = 0;
    for (let i = 0; i < 50; i += 1) {
      const [found] = await sql<[{ count: number }]>`
        select count(*)::int4 as count from pg_stat_activity
        where datname = current_database() and application_name like 'belfry%'`;
      most = Math.max(most, found.count);
      await sleep(20);
    }
    going = false;
    await Promise.all(load);
    // More than two of them may have.
    expect(most).toBeGreaterThan(2 * (pool + 2));
    expect(most).toBeLessThanOrEqual(3 * (pool + 2));
  });

  test("streams", async () => {
    const streams = async () => {
      const found = await metrics();
      return [1, 2, 3].map((number) => found.get(`belfry_streams{process="${number}"}`) ?? Number.NaN);
    };
    await expect.poll(streams).toEqual([0, 0, 0]);
    const ways = await atEachProcess(machine, async () => {
      const way = transport(target, "connect", headers);
      await createClient(EventQueryService, way).searchEvents({ query: {} });
      return way;
    });
    const asked = await Promise.allSettled(ways.flatMap((way) => Array.from({ length: 30 }, () => watchOver(way))));
    const open = asked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    onTestFinished(() => open.forEach((watch) => void watch.end()));
    const refused = asked.flatMap((each) => (each.status === "rejected" ? [each.reason.code] : []));
    expect(new Set(refused)).toEqual(new Set([Code.ResourceExhausted]));
    expect(sum(await streams())).toBe(open.length);
    // One tenant leaves a part to others, and takes more than two of the processes have.
    expect(open.length).toBeGreaterThan((limits.streamsMax * 2) / 3);
    expect(open.length).toBeLessThanOrEqual(limits.streamsMax);
  });

  test("connections, of which none has more than twice another's", async () => {
    const open = Array.from({ length: 64 }, () => openHttp2(target));
    onTestFinished(() => open.forEach((connection) => void connection.close()));
    const ready = await Promise.all(open.map(({ send }) => send({ method: "GET", path: "/readyz" })));
    expect(new Set(ready.map(({ status }) => status))).toEqual(new Set([200]));
    await expect.poll(async () => sum(await machine.connections())).toBeGreaterThanOrEqual(64);
    const counts = await machine.connections();
    expect(Math.max(...counts)).toBeLessThanOrEqual(2 * Math.min(...counts));
    for (let i = 0; i < 64; i += 1) {
      const connection = openHttp2(target);
      open.push(connection);
      // One beyond what its process may have is closed.
      await connection.send({ method: "GET", path: "/readyz" }).catch(() => undefined);
    }
    await expect.poll(() => machine.connections()).toEqual([32, 32, 32]);
  });
});

test("they report as one, take no more memory than is counted for them, and end with the machine", async () => {
  const found = await metrics();
  expect(found.get("belfry_processes")).toBe(3);
  expect(found.get("belfry_process_deaths_total")).toBe(0);
  expect([...found.keys()].filter((name) => name.startsWith("process_resident_memory_bytes")).sort()).toEqual(
    ["1", "2", "3", "owner"].map((process) => `process_resident_memory_bytes{process="${process}"}`),
  );
  const memory = [1, 2, 3].map((number) => found.get(`process_resident_memory_bytes{process="${number}"}`));
  for (const bytes of memory) expect(bytes).toBeLessThan(GiB);
  expect(new Set(lines().map(({ process }) => process))).toEqual(new Set([1, 2, 3, "owner"]));
  const processes = machine.serving();
  expect(processes).toHaveLength(3);
  await machine.server.stop();
  expect(machine.server.complaints).toEqual([]);
  expect(processes.filter(running)).toEqual([]);
});
