import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { credentials, loadPackageDefinition, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { temporaryDir } from "../support/database.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const aliases = {
  BELFRY_SERVICE_ALIASES: "other.platform.v1.Ingest=belfry.receiver.v1.DataReceiverService",
  BELFRY_KEY_HEADER_ALIASES: "Other-Api-Key",
};
const server = await testServer({ ...aliases, BELFRY_CORS_ORIGINS: "https://app.example.com" });
const tenant = await testTenant(server.database.sql);
const ingest = await keyHeaders(server.database.sql, tenant.id, "DATA_INGEST", null);
const key = ingest["service-api-key"];

/** What another service's agents are made of: the same methods, numbers and types, and names of its own. */
const foreign = `
  syntax = "proto3";
  package other.platform.v1;
  service Ingest {
    rpc PutEvents(EventBatch) returns (EventAnswer);
    rpc PutMetrics(MetricBatch) returns (MetricAnswer);
    rpc PutEvent(stream EventItem) returns (EventAnswer);
  }
  enum Level { LEVEL_DEFAULT = 0; LEVEL_DEBUG = 1; LEVEL_INFO = 2; LEVEL_WARNING = 3; LEVEL_ERROR = 4; LEVEL_CRITICAL = 5; }
  message Happening { int64 time = 1; string title = 2; map<string, string> labels = 3; string brief = 6; Level level = 8; }
  message EventBatch { bool verbose = 1; repeated Happening list = 2; }
  message EventItem { oneof item { Happening happening = 1; } }
  message EventAnswer { int32 bad = 1; int32 good = 2; string text = 3; }
  message Sample { string id = 1; int64 time = 2; double number = 3; map<string, string> labels = 4; }
  message MetricBatch { bool verbose = 1; repeated Sample tagged = 4; repeated Sample list = 5; }
  message MetricAnswer { int32 bad = 1; int32 good = 2; string text = 3; }`;
const file = join(temporaryDir(), "foreign.proto");
writeFileSync(file, foreign);
// biome-ignore lint/suspicious/noExplicitAny: this package makes its clients at run time
const { Ingest } = (loadPackageDefinition(loadSync(file, { longs: Number })) as any).other.platform.v1;
const client = new Ingest(new URL(server.url).host, credentials.createInsecure());
afterAll(() => client.close());

type Answer = { code: number; details: string } | { good: number; bad: number; text: string };

/** Calls as the foreign agent does, with its key in its header. */
function call(method: string, request: object | object[], headers: Record<string, string> = { "other-api-key": key }) {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return new Promise<Answer>((resolve) => {
    const done = (error: { code: number; details: string } | null, answer: Answer) => resolve(error ?? answer);
    if (!Array.isArray(request)) return client[method](request, metadata, done);
    const stream = client[method](metadata, done);
    for (const message of request) stream.write(message);
    stream.end();
  });
}

const happening = (title: string) => ({
  time: Date.now(),
  title,
  labels: { source: "foreign-1" },
  brief: "brief",
  level: 4,
});

describe("an agent made for another service, with stubs under a foreign package name, over gRPC", () => {
  test("sends events and points in unary calls", async () => {
    expect(await call("PutEvents", { list: [happening("disk full")] })).toMatchObject({
      good: 1,
      text: expect.stringContaining("1 of 1 events"),
    });
    const sample = { id: "system.uptime", time: Date.now(), number: 4, labels: { source: "foreign-1" } };
    expect(await call("PutMetrics", { tagged: [sample], list: [sample] })).toMatchObject({ good: 2 });
  });

  test("sends events in a client stream", async () => {
    const items = Array.from({ length: 100 }, (_, i) => ({ happening: happening(`event ${i}`) }));
    expect(await call("PutEvent", items)).toMatchObject({ good: 100 });
  });

  test("what it sent is found under our names", async () => {
    const { body } = await v1(server.url, tenant.headers)("POST", "/v1/events:search", {
      query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value: "disk full" } } },
    });
    expect(body.results).toMatchObject([{ occurrences: [{ severity: "SEVERITY_ERROR", summary: "brief" }] }]);
  });

  test("is refused without a key or with a wrong one, and a key in our header goes first", async () => {
    const request = { list: [happening("disk full")] };
    expect(await call("PutEvents", request, {})).toMatchObject({
      code: 16,
      details: expect.stringContaining("service-api-key"),
    });
    expect(await call("PutEvents", request, { "other-api-key": "nonsense" })).toMatchObject({ code: 16 });
    expect(await call("PutEvents", request, { "other-api-key": key, "service-api-key": "nonsense" })).toMatchObject({
      code: 16,
    });
    expect(await call("PutEvents", request, { "other-api-key": "nonsense", "service-api-key": key })).toMatchObject({
      good: 1,
    });
  });
});

describe("other protocols", () => {
  test("the foreign header carries the key over /v1 and Connect, and a browser may send it", async () => {
    const headers = { "other-api-key": key, "content-type": "application/json" };
    const events = [{ name: "disk full", timestamp: String(Date.now()), dimensions: { source: "foreign-1" } }];
    for (const path of ["/v1/data-receiver/events", "/other.platform.v1.Ingest/PutEvents"]) {
      const answer = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify({ events }) });
      expect([answer.status, await answer.json()], path).toMatchObject([200, { succeeded: 1 }]);
    }
    const preflight = { origin: "https://app.example.com", "access-control-request-method": "POST" };
    const allowed = await fetch(`${server.url}/v1/events:search`, { method: "OPTIONS", headers: preflight });
    expect(allowed.headers.get("access-control-allow-headers")).toContain("other-api-key");
  });
});

describe("settings that cannot be", () => {
  const start = (services: string) => {
    const env = {
      DATABASE_URL: server.database.url,
      BELFRY_PORT: "0",
      BELFRY_PLAINTEXT: "1",
      BELFRY_MASTER_KEYS: masterKeys,
      BELFRY_SERVICE_ALIASES: services,
    };
    return startServer(readConfig({ ...env, BELFRY_DATA_DIR: temporaryDir() }), openLog("silent"));
  };

  test.each([
    ["other.v1.Ingest=belfry.receiver.v1.Receiver", "there is no service belfry.receiver.v1.Receiver"],
    ["belfry.events.v1.EventQueryService=belfry.receiver.v1.DataReceiverService", "is a service of its own"],
  ])("%s", async (services, message) => {
    await expect(start(services)).rejects.toThrow(message);
  });

  test.each(["other", "a.B=c.D,a.B=e.F", "a=b=c", "/a.B=c.D"])("%s is no list of names", (services) => {
    expect(() => readConfig({ BELFRY_SERVICE_ALIASES: services })).toThrow("must be full names of services");
  });

  test("a header's name is one", () => {
    expect(() => readConfig({ BELFRY_KEY_HEADER_ALIASES: "other key" })).toThrow("must be names of headers");
  });
});
