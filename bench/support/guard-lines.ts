import { create } from "@bufbuild/protobuf";
import { EventQueryService, GetEventRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { LoadRequest } from "../load/load.ts";
import { type Calls, callsOf } from "./calls.ts";
import { putEvents } from "./events.ts";
import type { Generator } from "./generator.ts";
import type { GuardedServer, GuardKeys } from "./guarded-server.ts";
import { labelsOf, metricOf, metricsEach, putPoints } from "./points.ts";

type Key = Record<string, string>;

/** Answers to a measurement: how many items they held, the median of their time, and how many were not good. */
export interface Done {
  items: number;
  p50Ms: number;
  bad: number;
}

/** Something that is asked of a server for a time. */
export interface GuardLine {
  name: string;
  run(server: GuardedServer, countMs: number): Promise<Done>;
}

const hourMs = 3_600_000;
/** Known events, and known series, that what is sent is about. */
const hosts = 10_000;
const series = 10_000;
/** The day of one host's series that is asked for, with a point of each so often. */
const dayHours = 23;
const everyMs = 30_000;

const protocols = {
  gRPC: "grpc",
  "/v1": "rest",
  "Connect, binary": "connectBinary",
  "Connect, JSON": "connectJson",
} as const satisfies Record<string, keyof Calls>;
type Protocol = keyof typeof protocols;
const callOf = (calls: Calls, protocol: Protocol) => calls[protocols[protocol]];

/** Connections and items of each request. */
interface Shape {
  connections: number;
  count: number;
}

/** A line of requests that `requestOf` makes once for each server, with the key of a tenant. */
function loadLine(
  name: string,
  { generator, tenant, connections, count }: Shape & { generator: Generator; tenant: keyof GuardKeys },
  requestOf: (key: Key, server: GuardedServer) => LoadRequest,
): GuardLine {
  const requests = new Map<GuardedServer, LoadRequest>();
  return {
    name,
    async run(server, countMs) {
      const request = requests.get(server) ?? requestOf(server.keys[tenant], server);
      requests.set(server, request);
      const load = { port: server.port, request, connections, streams: 1, leadInMs: 100, countMs };
      const { answered, bad, p50Ms } = await generator.run(load);
      return { items: (answered - bad) * count, p50Ms, bad };
    },
  };
}

/** Lines of requests, and the storing of what they ask for. */
export interface GuardLoads {
  lines: GuardLine[];
  fill(server: GuardedServer): Promise<void>;
}

/**
 * Makes the lines of reads, events and points. The times of points follow the count of a generator's requests, a second each,
 * so large requests have a generator of their own, `points`.
 */
export function guardLoads(generator: Generator, points: Generator): GuardLoads {
  const baseMs = Math.floor((Date.now() - dayHours * hourMs) / 1000) * 1000;
  const eventIds = new Map<GuardedServer, string>();
  const reading = { generator, tenant: "read", connections: 8, count: 1 } as const;
  const sending = { generator, tenant: "load" } as const;
  const lines = [
    ...(Object.keys(protocols) as Protocol[]).map((protocol) =>
      loadLine(`GetEvent, ${protocol}`, reading, (key, server) =>
        callOf(getEvent(eventIds.get(server), key), protocol),
      ),
    ),
    ...(["gRPC", "/v1"] as const).flatMap((protocol) => [
      loadLine(`one event, ${protocol}`, { ...sending, connections: 64, count: 1 }, (key) =>
        callOf(putEvents(1, hosts, key), protocol),
      ),
      loadLine(`1,000 events, ${protocol}`, { ...sending, connections: 4, count: 1000 }, (key) =>
        callOf(putEvents(1000, hosts / 1000, key), protocol),
      ),
    ]),
    ...(["grpc", "json"] as const).flatMap((form) => [
      loadLine(
        `one point, ${names[form]}`,
        { ...sending, connections: 64, count: 1 },
        (key) => putPoints(1, series, baseMs, key)[form],
      ),
      loadLine(
        `10,000 points, ${names[form]}`,
        { ...sending, generator: points, connections: 4, count: series },
        (key) => putPoints(series, series, baseMs, key)[form],
      ),
    ]),
    loadLine("a day of a series, /v1", { ...reading, connections: 4 }, (key) => searchDay(baseMs, key)),
  ];
  return {
    lines,
    async fill(server) {
      eventIds.set(server, await storeEvent(server));
      await storeDay(server, baseMs);
    },
  };
}

const names = { grpc: "gRPC", json: "/v1" };

function getEvent(id: string | undefined, key: Key): Calls {
  const message = create(GetEventRequestSchema, { id: id ?? "" });
  return callsOf(EventQueryService.method.getEvent, message, { method: "GET", path: `/v1/events/${id}` }, key);
}

/** The means of each hour. */
function searchDay(fromMs: number, key: Key): LoadRequest {
  const equals = (field: string, value: string) => ({ filter: { field, operation: "OP_EQUALS", value } });
  const body = {
    entityClause: equals("host", labelsOf(0).host),
    metricClause: equals("name", metricOf(7)),
    timeRange: { start: new Date(fromMs).toISOString(), end: new Date(fromMs + dayHours * hourMs).toISOString() },
    downsample: { aggregator: "MEAN", period: "1h" },
  };
  const headers = { ...key, "content-type": "application/json" };
  return { http: 1, method: "POST", path: "/v1/metrics:search", headers, body: Buffer.from(JSON.stringify(body)) };
}

/** Stores an event; returns its id. */
async function storeEvent({ call }: GuardedServer): Promise<string> {
  const event = {
    name: "disk almost full",
    timestamp: String(Date.now()),
    dimensions: labelsOf(0),
    severity: "SEVERITY_ERROR",
    status: "STATUS_OPEN",
  };
  await call("read", "data-receiver/events", { events: [event] });
  const { results } = await call("read", "events:search", { query: {} });
  if (results?.[0]?.id === undefined) throw new Error("the event that was stored is not found");
  return results[0].id;
}

/** Stores a day of a host's series. */
async function storeDay({ call }: GuardedServer, fromMs: number): Promise<void> {
  const steps = (dayHours * hourMs) / everyMs;
  const stepsEach = 200; // 10,000 points a request
  for (let from = 0; from < steps; from += stepsEach) {
    const metrics = Array.from({ length: stepsEach * metricsEach }, (_, i) => ({
      metric: metricOf(i % metricsEach),
      timestamp: String(fromMs + (from + Math.floor(i / metricsEach)) * everyMs),
      value: Math.round(Math.random() * 10_000) / 100,
      dimensions: labelsOf(0),
    })).filter(({ timestamp }) => Number(timestamp) < fromMs + dayHours * hourMs);
    const { failed = 0 } = await call("read", "data-receiver/metrics", { metrics });
    if (failed > 0) throw new Error(`${failed} points were not stored`);
  }
}
