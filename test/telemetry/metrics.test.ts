import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { metricsPort, metricsText } from "../../src/telemetry/metrics-port.ts";
import { requestCounts } from "../../src/telemetry/requests.ts";
import { rawHttp1, transport } from "../support/clients.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

/** A metric as prom2json writes it: all numbers are texts. */
interface Parsed {
  name: string;
  help: string;
  type: string;
  metrics: { labels?: Record<string, string>; value?: string; count?: string; sum?: string; buckets?: object }[];
}

const parse: (text: string) => Parsed[] = createRequire(import.meta.url)("parse-prometheus-text-format");

const server = await testServer({ BELFRY_METRICS_ADDRESS: "0", BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
const { headers, id } = await testTenant(server.database.sql);
const key = headers["service-api-key"] ?? "";

async function scraped() {
  const answer = await fetch(server.metricsUrl ?? "");
  return { type: answer.headers.get("content-type"), text: await answer.text() };
}

/** The samples of a metric by their labels, for example `events` or `POST 200`; of a histogram how many values each has. */
async function samples(name: string, ...labels: string[]) {
  const { text } = await scraped();
  const found = [...text.matchAll(new RegExp(`^${name}(?:_count)?(?:{(.*)})? (\\S+)$`, "gm"))];
  return Object.fromEntries(
    found.map(([, of = "", value]) => {
      const byName = Object.fromEntries([...of.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text]));
      return [labels.map((label) => byName[label]).join(" "), Number(value)];
    }),
  );
}

const event = (i: number) => ({
  name: `scripted ${i}`,
  dimensions: { source: "secret-host" },
  timestamp: BigInt(Date.now()),
});

const disks = { contains: { field: "name", value: "disk" } };
const open = { dimensions: { source: "secret-host" }, severity: "SEVERITY_ERROR", status: "STATUS_OPEN" };

describe("the metrics of a scripted run", () => {
  test("equal what was sent: calls by RPC, protocol and code, items, transactions", async () => {
    for (const protocol of ["grpc", "grpc-web", "connect", "connect-json"] as const) {
      const receiver = createClient(DataReceiverService, transport(server.target, protocol, headers));
      for (let i = 0; i < 3; i += 1) await receiver.putEvents({ events: [event(i), event(i + 3)] });
      const strangers = createClient(EventQueryService, transport(server.target, protocol, { "service-api-key": "x" }));
      await strangers.searchEvents({ query: {} }).catch(ConnectError.from);
      const events = createClient(EventQueryService, transport(server.target, protocol, headers));
      for (let i = 0; i < 2; i += 1) await events.searchEvents({}).catch(ConnectError.from);
    }
    const json = { ...headers, "content-type": "application/json" };
    const put = JSON.stringify({ events: [{ ...event(0), timestamp: String(Date.now()) }] });
    await rawHttp1(server.target, { path: "/v1/data-receiver/events", headers: json, body: [Buffer.from(put)] });
    await rawHttp1(server.target, { path: "/v1/nothing", headers: json });
    await rawHttp1(server.target, { method: "GET", path: "/healthz" });

    const [puts, searches] = [
      "belfry.receiver.v1.DataReceiverService/PutEvents",
      "belfry.events.v1.EventQueryService/SearchEvents",
    ];
    await expect
      .poll(() => samples("belfry_rpc_requests_total", "rpc", "protocol", "code"))
      .toEqual({
        ...Object.fromEntries(
          Object.entries({ grpc: 1, "grpc-web": 1, connect: 2 }).flatMap(([protocol, times]) => [
            [`${puts} ${protocol} OK`, 3 * times],
            [`${searches} ${protocol} UNAUTHENTICATED`, times],
            [`${searches} ${protocol} INVALID_ARGUMENT`, 2 * times],
          ]),
        ),
        [`${puts} json OK`]: 1,
      });
    expect(await samples("belfry_rpc_duration_seconds", "rpc", "protocol")).toEqual({
      [`${puts} grpc`]: 3,
      [`${puts} grpc-web`]: 3,
      [`${puts} connect`]: 6,
      [`${puts} json`]: 1,
      [`${searches} grpc`]: 3,
      [`${searches} grpc-web`]: 3,
      [`${searches} connect`]: 6,
    });
    expect(await samples("belfry_http_other_requests_total", "status")).toEqual({ 200: 1, 404: 1 });
    expect(await samples("belfry_ingest_items_total", "kind")).toEqual({ events: 25 });
    expect(await samples("belfry_ingest_parts_total", "kind")).toEqual({ events: 13 });
    // One after the other, so that nothing was gathered.
    expect(await samples("belfry_ingest_commit_seconds", "kind")).toEqual({ events: 13 });
    expect(await samples("belfry_ingest_refused_total", "kind")).toEqual({ events: 0 });
    expect(await samples("belfry_ingest_waiting_items", "kind")).toEqual({ events: 0 });
  });

  test("tell of streams while they are open", async () => {
    const events = createClient(EventQueryService, transport(server.target, "grpc", headers));
    const ending = new AbortController();
    const watches = [1, 2].map(() => events.watchEvents({ query: {} }, ending)[Symbol.asyncIterator]());
    for (const watch of watches) await watch.next();
    expect(await samples("belfry_streams")).toEqual({ "": 2 });
    expect(await samples("belfry_watches")).toEqual({ "": 2 });
    expect(await samples("belfry_watched_tenants")).toEqual({ "": 1 });
    ending.abort();
    await expect.poll(() => samples("belfry_streams")).toEqual({ "": 0 });
    const watched = await samples("belfry_rpc_requests_total", "rpc", "code");
    expect(watched).toMatchObject({ "belfry.events.v1.EventQueryService/WatchEvents CANCELLED": 2 });
  });

  test("equal what was stored of points and sent of notifications, by outcome", async () => {
    await using receiver = await httpReceiver();
    const json = v1(server.url, headers);
    const made = [
      await json("POST", "/v1/notification/triggers", { name: "disks", type: { event: { query: { clause: disks } } } }),
      await json("POST", "/v1/notification/destinations", { name: "ops", type: { webhook: { url: receiver.url } } }),
      await json("POST", "/v1/notification/rules", {
        name: "page",
        enabled: true,
        message: "x",
        triggerNames: ["disks"],
        destinationNames: ["ops"],
      }),
    ];
    expect(made.map(({ status }) => status)).toEqual([200, 200, 200]);
    const report = (name: string) => ({ ...open, name, timestamp: String(Date.now()) });
    await json("POST", "/v1/data-receiver/events", { events: ["disk 1", "disk 2", "disk 3"].map(report) });
    const tries = () => samples("belfry_delivery_tries_total", "kind", "outcome");
    await expect.poll(tries).toEqual({ "webhook sent": 3 });
    receiver.answer(answering(503));
    await json("POST", "/v1/data-receiver/events", { events: [report("disk 4")] });
    await expect.poll(tries).toEqual({ "webhook sent": 3, "webhook busy": 1 });
    await expect.poll(() => samples("belfry_deliveries_total", "status")).toEqual({ sent: 3, pending: 1 });
    expect(await samples("belfry_delivery_try_seconds", "kind")).toEqual({ webhook: 4 });
    expect(await samples("belfry_delivery_late_seconds")).toEqual({ "": 4 });
    expect(await samples("belfry_running_delivery_tries")).toEqual({ "": 0 });

    const before = await samples("belfry_ingest_items_total", "kind");
    const point = (value: number) => ({
      metric: "m",
      dimensions: { source: "a" },
      timestamp: String(Date.now() - value),
      value,
    });
    await json("POST", "/v1/data-receiver/metrics", { metrics: [1, 2, 3, 4, 5].map(point) });
    expect(await samples("belfry_ingest_items_total", "kind")).toEqual({ ...before, metrics: 5 });
    expect(await samples("belfry_known_series")).toEqual({ "": 1 });
    const done = async () => (await samples("belfry_jobs_done_total", "kind"))["metrics.merge"];
    await expect.poll(done).toBeGreaterThan(0);
  });

  test("name neither tenants nor what they sent, nor keys", async () => {
    const { text } = await scraped();
    for (const secret of [id, key, "scripted", "secret-host"]) expect(text).not.toContain(secret);
  });
});

describe("what Prometheus reads", () => {
  test("is its text format: ranges add up, and the pools, the process and the version are in it", async () => {
    const { type, text } = await scraped();
    expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
    const all = parse(text);
    const [ranges] = all.filter(({ name }) => name === "belfry_delivery_late_seconds");
    expect(ranges).toMatchObject({
      type: "HISTOGRAM",
      metrics: [{ count: "4", buckets: { "+Inf": "4" } }],
    });
    let before = 0;
    for (const [, end, value] of text.matchAll(/^belfry_\w+_bucket{.*le="(.*?)".*} (\d+)$/gm)) {
      expect(Number(value)).toBeGreaterThanOrEqual(before);
      before = end === "+Inf" ? 0 : Number(value);
    }
    expect(Object.keys(await samples("belfry_pool_connections_max", "pool")).sort()).toEqual([
      "background",
      "ingest",
      "questions",
      "sending",
      "system",
    ]);
    expect(await samples("belfry_database_up")).toEqual({ "": 1 });
    expect(Object.keys(await samples("belfry_build_info", "version"))[0]).toMatch(/^\d+\.\d+\.\d+/);
    const names = all.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        "process_resident_memory_bytes",
        "nodejs_eventloop_lag_p99_seconds",
        "belfry_connections",
      ]),
    );
  });

  // The rules of `promtool check metrics` (github.com/prometheus/client_golang, prometheus/testutil/promlint).
  test("has names by its conventions", async () => {
    const wrong: string[] = [];
    const { text } = await scraped();
    for (const { name, help, type, metrics } of parse(text)) {
      const say = (rule: string) => wrong.push(`${name}: ${rule}`);
      if (!/^[a-z][a-z0-9_]*$/.test(name)) say("is not in snake_case");
      if (help === "") say("has no help");
      if ((type === "COUNTER") !== name.endsWith("_total")) say("counters alone end with _total");
      if (/_(bucket|count|sum)$/.test(name)) say("ends as parts of histograms do");
      if (/_(counter|gauge|histogram|summary)(_|$)/.test(name)) say("names its type");
      if (/_(ms|milliseconds|micros\w*|nanos\w*|minutes|hours|days|kib|mib|kilobytes|megabytes)(_|$)/.test(name)) {
        say("has no base unit");
      }
      for (const label of metrics.flatMap(({ labels = {} }) => Object.keys(labels))) {
        if (!/^[a-z][a-z0-9_]*$/.test(label)) say(`has the label ${label}`);
      }
    }
    expect(wrong).toEqual([]);
    const linted = promisify(execFile)("promtool", ["check", "metrics"]);
    linted.child.stdin?.on("error", () => {}).end(text);
    const told = await linted.then(
      ({ stderr }) => stderr,
      (error) => (error.code === "ENOENT" ? "" : error.stderr),
    );
    expect(told).toBe(""); // where promtool is installed
  });

  test("is at one path, of a port that takes no other requests", async () => {
    const url = new URL(server.metricsUrl ?? "");
    expect(url.hostname).toBe("127.0.0.1");
    expect((await fetch(url.origin)).status).toBe(404);
    expect((await fetch(url, { method: "POST" })).status).toBe(404);
    expect((await fetch(new URL("/metrics", server.url))).status).toBe(404);
  });

  test("is not served unless a port is set", async () => {
    expect((await testServer({})).metricsUrl).toBeUndefined();
  });
});

test("a metric that cannot be read fails its scrape, and not the server", async () => {
  const nothing = new Proxy({}, { get: () => () => expect.unreachable("no numbers") }) as never;
  const text = await metricsText({ sources: nothing, requests: requestCounts() });
  const port = await metricsPort({ host: "127.0.0.1", port: 0 }, text);
  for (let i = 0; i < 2; i += 1) expect((await fetch(port.url)).status).toBe(500);
  await port.close();
});
