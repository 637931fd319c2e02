import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { exportTo } from "../../src/backup/export.ts";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { version } from "../../src/version.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { everyRow, newMarks } from "../support/marks.ts";
import { httpReceiver } from "../support/receivers.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { destinationsPath } from "./samples.ts";

/*
 * The addresses of webhooks whose tries fail in every way are marks. What fails is where an address could be quoted: none is found in an
 * answer, in what a template makes, in a log line, in a row beside the destination's own, or in an export.
 */
const hidden = "********";
const dir = mkdtempSync(join(tmpdir(), "belfry-places-"));
const receiver = await httpReceiver();
const closed = await httpReceiver();
await closed[Symbol.asyncDispose]();
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});
receiver.answer((request, response) => {
  const got = JSON.stringify(request);
  const all = `${got} ${Buffer.from(got).toString("base64")} ${encodeURIComponent(got)}`;
  const status = Number(/^\/hooks\/(\d+)/.exec(request.path)?.[1] ?? 200);
  response.writeHead(status, { location: `${request.path}/elsewhere`, "retry-after": "3600" }).end(all);
});

const event = {
  name: "Down",
  type: "..",
  timestamp: Date.now(),
  dimensions: { source: "a" },
  severity: "SEVERITY_ERROR",
  status: "STATUS_OPEN",
};

/** What stands before an address's secret, by how a try there ends. */
const ways: Readonly<Record<string, string>> = {
  taken: `${receiver.url}/hooks/200/`,
  redirected: `${receiver.url}/hooks/302/`,
  refused: `${receiver.url}/hooks/400/`,
  gone: `${receiver.url}/hooks/410/`,
  "too much": `${receiver.url}/hooks/429/`,
  failed: `${receiver.url}/hooks/500/`,
  "with tags": `${receiver.url}/hooks/400/{{event.name}}/`,
  "out of its path": `${receiver.url}/hooks/{{event.type}}/`,
  closed: `${closed.url}/hooks/`,
  "no such host": "http://hooks.invalid/hooks/",
  "not public": "http://10.1.2.3/hooks/",
};

async function start(database: TestDatabase) {
  const lines: string[] = [];
  const config = readConfig({
    DATABASE_URL: database.url,
    BELFRY_DATA_DIR: mkdtempSync(join(dir, "data-")),
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
    BELFRY_SHUTDOWN_TIMEOUT: "500ms",
    BELFRY_MASTER_KEYS: masterKeys,
    BELFRY_OUTBOUND_ALLOW: "127.0.0.1",
  });
  const server = await startServer(config, openLog("trace", { write: (line: string) => void lines.push(line) }));
  const tenant = await testTenant(database.sql);
  return { ...database, server, lines, call: v1(server.url, tenant.headers), marks: newMarks() };
}
type Place = Awaited<ReturnType<typeof start>>;

/** Stores a destination of each way, each with a template that would print its address, and a rule that sends an event to all. */
async function send({ call, marks }: Place): Promise<void> {
  const body =
    '{"all":"{{#destination.webhook}}{{url}} {{addressHint}}{{/destination.webhook}}","one":"{{destination.webhook.url}}"}';
  for (const [name, before] of Object.entries(ways)) {
    // What a hint shows is no secret.
    const webhook = { url: `${before}${marks.next()}-end`, format: "WEBHOOK_FORMAT_TEMPLATE", body };
    expect(await call("POST", destinationsPath, { name, type: { webhook } })).toMatchObject({ status: 200 });
  }
  const message = "{{destination.webhook.url}} {{destination.webhook.addressHint}}";
  const rule = {
    name: "all",
    enabled: true,
    matchers: ["alertname=Down"],
    message,
    destinationNames: Object.keys(ways),
  };
  expect(await call("POST", "/v1/notification/rules", rule)).toMatchObject({ status: 200 });
  expect((await call("POST", "/v1/data-receiver/events", { events: [event] })).body.failed).toBe(0);
}

const listed = async ({ call }: Place) =>
  (await call("GET", "/v1/notification/deliveries?pageSize=100")).body.deliveries;

/** By a place where an address might be said, what is said there, an item each. */
const places: Readonly<Record<string, (place: Place) => Promise<unknown[]>>> = {
  "the answers to a test of what is stored": async ({ call }) =>
    Promise.all(
      Object.keys(ways).map(async (name) => {
        const { destination } = (await call("GET", `${destinationsPath}/${encodeURIComponent(name)}`)).body;
        return await call("POST", `${destinationsPath}:test`, { name, type: destination.type });
      }),
    ),
  "the answers to a test of what is sent": async ({ call, marks }) =>
    Promise.all(
      Object.values(ways).map((before) => {
        const type = { webhook: { url: `${before}${marks.next()}-end` } };
        return call("POST", `${destinationsPath}:test`, { name: "not stored", type });
      }),
    ),
  "what templates make": async () => receiver.received.map(({ body }) => body),
  "the answers about destinations": async ({ call }) => (await call("GET", destinationsPath)).body.destinations,
  "the preview of a rule": async ({ call }) =>
    (await call("POST", "/v1/notification/rules/all:preview", { event })).body.previews,
  "the list of deliveries": async (place) => await listed(place),
  "each delivery": async (place) =>
    Promise.all(
      (await listed(place)).map(({ id }: { id: string }) => place.call("GET", `/v1/notification/deliveries/${id}`)),
    ),
  "the explanation of an event": async (place) => {
    const [{ occurrenceId }] = await listed(place);
    const path = `/v1/notification/occurrences/${encodeURIComponent(occurrenceId)}:explain`;
    return (await place.call("POST", path, {})).body.rules;
  },
  "how notifying itself is": async ({ call }) => [(await call("GET", "/v1/notification/health")).body],
  "the audit log": async ({ call }) => (await call("GET", "/v1/audit-log?pageSize=1000")).body.entries,
  "the metrics of the server": async ({ server }) => [await (await fetch(`${server.url}/metrics`)).text()],
  "the log": async ({ lines }) => lines,
  "the rows of all tables, but a destination's own": async ({ sql }) =>
    (await everyRow(sql)).filter((row) => !row.startsWith("destinations:")),
};

const former = await testDatabase();
await former.sql`update migrations set oldest_server = '0.1.0', applied_at = now() where name = '0026_closed-by'`;

describe.each([
  ["when no server of before is left", await testDatabase(), true],
  ["beside a server of before", former, false],
] as const)("%s no address that is a secret is found in", (_when, database, sealed) => {
  let place: Place;
  beforeAll(async () => {
    place = await start(database);
    await send(place);
    // Each was tried: it has ended, or says why it waits.
    await vi.waitFor(async () => {
      const tried = (await listed(place)).filter((each: { attempts: number }) => each.attempts > 0);
      expect(tried).toHaveLength(Object.keys(ways).length);
    }, 20_000);
  });
  afterAll(() => place.server.stop());

  test.each(Object.entries(places))("%s", async (_place, read) => {
    const said = (await read(place)).map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
    expect(said.length).toBeGreaterThan(0);
    expect(said.filter((text) => place.marks.within(text).length > 0)).toEqual([]);
  });

  test("an export, unless they are stored so that a server of before can read them", async () => {
    const file = join(dir, `export ${sealed}`);
    await exportTo(database.url, file, version);
    const text = zstdDecompressSync(readFileSync(file)).toString();
    expect(text).toContain("out of its path");
    expect(place.marks.within(text).length > 0).toBe(!sealed);
  });

  test("yet each was sent to where it belongs", () => {
    const paths = receiver.received.map(({ path }) => path).filter((path) => place.marks.within(path).length > 0);
    expect(new Set(paths).size).toBeGreaterThan(5);
    expect(receiver.received.filter(({ body }) => body.includes(hidden)).length).toBeGreaterThan(5);
  });
});
