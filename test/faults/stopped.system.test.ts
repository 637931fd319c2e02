import { chownSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { connect } from "../../src/db/connect.ts";
import { dataDirectoryOf } from "../../src/embedded/data-directory.ts";
import { type Embedded, startEmbedded } from "../../src/embedded/embedded.ts";
import { protocols, transport } from "../support/clients.ts";
import { poolOptions } from "../support/database.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { serverProcess } from "./server-process.ts";

const quiet = { info() {}, warn() {}, error() {} };
const dataDir = await clusterPlace();
const ownDir = await place();
let postgres: Embedded = await startPostgres();
const server = await serverProcess({
  DATABASE_URL: postgres.url,
  BELFRY_DATA_DIR: ownDir,
});
await server.start();
const pool = connect(postgres.url, poolOptions());
const tenant = await testTenant(pool.sql);
/** A key that the server has never seen: to look it up it needs the database. */
const unseen = await keyHeaders(pool.sql, tenant.id, "USER", "manager");
await pool.close();

afterAll(async () => {
  await server.stop();
  await postgres.stop("immediate");
  await Promise.all([clear(dataDir), clear(ownDir)]);
});

function startPostgres() {
  return startEmbedded({ dataDir, log: quiet, durable: false });
}

/** The code of an answer, 0 for success; with the cause where the client found none, which it calls code 10 or 14, too. */
type Outcome = number | string;

/** A read and a write by one way into the server. */
interface Way {
  name: string;
  read(): Promise<Outcome>;
  write(name: string): Promise<Outcome>;
}

/** HTTP statuses of the codes that are met here. */
const statuses = new Map<number, number>([
  [0, 200],
  [Code.Unavailable, 503],
  [Code.Unauthenticated, 401],
]);

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 0,
    (error): Outcome => {
      const { code, cause, rawMessage } = ConnectError.from(error);
      return cause === undefined ? code : `${code}, by the client: ${rawMessage}`;
    },
  );

function ways(headers: Record<string, string>): Way[] {
  const json = v1(server.url, headers);
  async function rest(method: string, path: string, body?: object) {
    const answer = await json(method, path, body);
    if (answer.status === 503) expect(answer.headers.get("retry-after")).toBe("1");
    const code = answer.body.code ?? 0;
    expect(answer.status).toBe(statuses.get(code));
    return code;
  }
  return [
    ...protocols.map((protocol) => {
      const metrics = createClient(MetricDictionaryService, transport({ url: server.url }, protocol, headers));
      return {
        name: protocol,
        read: () => codeOf(metrics.getMetricEntry({ name: "system.uptime" })),
        write: (name: string) => codeOf(metrics.createMetricEntry({ metric: { name } })),
      };
    }),
    {
      name: "/v1",
      read: () => rest("GET", "/v1/dictionary/metrics/system.uptime"),
      write: (name: string) => rest("POST", "/v1/dictionary/metrics", { name }),
    },
  ];
}

const known = ways(tenant.headers);
const wrong = ways({ "service-api-key": "wrong" });

const atOnce = <T>(call: () => Promise<T>) => Promise.all(Array.from({ length: 50 }, call));

const health = createClient(Health, transport({ url: server.url }, "grpc", {}));
/** What a watch of the health is reported, without a key. */
const told: Status[] = [];
const ending = new AbortController();
async function watchHealth() {
  for await (const { status } of health.watch({}, ending)) told.push(status);
}
afterAll(() => ending.abort());

async function running() {
  if (postgres.pid === undefined) postgres = await startPostgres();
  for (const { read } of known) while ((await read()) !== 0) await sleep(10);
}

test("while PostgreSQL runs every way serves", async () => {
  watchHealth().catch(() => undefined);
  await expect.poll(() => told).toEqual([Status.SERVING]);
  for (const { name, write } of known) expect(await write(`from ${name}`)).toBe(0);
});

describe("PostgreSQL stopped", () => {
  // That none of them waits is a matter of the gate: test/db/circuit-breaker.system.test.ts.
  test("the next requests answer code 14, also 50 at once, by every way", async () => {
    await running();
    for (const { read } of known) await atOnce(read);
    await postgres.stop("fast");
    for (const { name, read, write } of known) {
      const codes = [await read(), await write("never"), ...(await atOnce(read))];
      expect(new Set(codes), name).toEqual(new Set([Code.Unavailable]));
    }
  });

  test("so do those with a key that the server has not seen yet; one of a wrong form is refused as ever", async () => {
    for (const { name, read } of ways(unseen)) expect(await read(), name).toBe(Code.Unavailable);
    for (const { name, read } of wrong) expect(await read(), name).toBe(Code.Unauthenticated);
  });

  test("gRPC's health says so, asked and to those who watch", async () => {
    expect(await health.check({ service: MetricDictionaryService.typeName })).toMatchObject({
      status: Status.NOT_SERVING,
    });
    await expect.poll(() => told.at(-1)).toBe(Status.NOT_SERVING);
  });
});

test("PostgreSQL started again: every way serves by itself, and what was refused was not done", async () => {
  postgres = await startPostgres();
  for (const { name, read, write } of known) {
    while ((await read()) !== 0) await sleep(10);
    expect(await write(`after, from ${name}`)).toBe(0);
  }
  await expect.poll(() => told.at(-1)).toBe(Status.SERVING);
  const { body } = await v1(server.url, tenant.headers)("GET", "/v1/dictionary/metrics");
  const own = body.metrics.filter(({ layer }: { layer: string }) => layer === tenant.name);
  expect(own.map(({ name }: { name: string }) => name)).toEqual(
    known.flatMap(({ name }) => [`from ${name}`, `after, from ${name}`]).sort(),
  );
  expect(server.complaints).toEqual([]);
});

test("a standby, which reads alone, is taken for no database until it is promoted", async () => {
  const { data } = dataDirectoryOf(dataDir);
  const standby = join(data, "standby.signal");
  await postgres.stop("fast");
  const { uid, gid } = statSync(data);
  writeFileSync(standby, "");
  chownSync(standby, uid, gid);
  postgres = await startPostgres();
  for (const { name, read, write } of known) {
    expect(await read(), name).toBe(Code.Unavailable);
    expect(await write("never"), name).toBe(Code.Unavailable);
  }
  await expect.poll(() => health.check({})).toMatchObject({ status: Status.NOT_SERVING });
  await postgres.stop("fast");
  rmSync(standby);
  postgres = await startPostgres();
  await running();
  for (const { name, write } of known) expect(await write(`promoted, from ${name}`)).toBe(0);
});
