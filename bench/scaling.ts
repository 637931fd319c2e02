// One, two and three servers on one PostgreSQL: what they take together, what an item costs, and how much they wait for each other.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService, SearchEntitiesRequestSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import {
  Aggregator,
  MetricQueryService,
  SearchMetricsRequestSchema,
} from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import type { LoadRequest } from "./load/load.ts";
import { callsOf } from "./support/calls.ts";
import { median } from "./support/compare.ts";
import { putEvents, putModels } from "./support/events.ts";
import { type FleetOutcome, startFleet, type Work } from "./support/fleet.ts";
import { machineFacts } from "./support/machine.ts";
import { quantileOf } from "./support/models.ts";
import { putPoints } from "./support/points.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { markdownTable } from "./support/table.ts";
import { watchLatency } from "./support/watch-latency.ts";

const hourMs = 3_600_000;
/** Each generator has times of its own for each line. */
const rangeMs = 600_000;
const hosts = 10_000;
const series = 10_000;
const sizes = [1, 2, 3] as const;
type Size = (typeof sizes)[number];

const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 3, countMs: 1500 });
const fleet = await startFleet(sizes.length);
const { database, keys, servers } = fleet;
const [key = {}] = keys;
let ranges = 0;

/** A request for each generator: of the same tenant or one of each; none sends what another has sent. */
function each(of: (key: Record<string, string>) => LoadRequest, tenants: "one" | "own" = "one"): LoadRequest[] {
  return servers.map((_, i) => {
    const request = of(tenants === "one" ? key : (keys[i] ?? {}));
    const { vary } = request;
    ranges += 1;
    return vary === undefined ? request : { ...request, vary: { ...vary, baseMs: vary.baseMs + ranges * rangeMs } };
  });
}

const equals = (field: string, text: string): MessageInitShape<typeof ClauseSchema> => ({
  filter: { field, operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value: text } } },
});
const post = (path: string) => ({ method: "POST", path }) as const;
const pointsMs = Date.now() - 6 * hourMs;
const seconds = (ms: number) => ({ seconds: BigInt(Math.floor(ms / 1000)) });

const searchEntities = (header: Record<string, string>) =>
  callsOf(
    EntityService.method.searchEntities,
    create(SearchEntitiesRequestSchema, {
      searchInput: { query: { clause: equals("dimensions.host", "web-00004242") } },
    }),
    post("/v1/modelcontext/entities:search"),
    header,
  ).grpc;
const searchMetrics = (header: Record<string, string>) =>
  callsOf(
    MetricQueryService.method.searchMetrics,
    create(SearchMetricsRequestSchema, {
      entityClause: equals("host", "web-00000042"),
      metricClause: equals("name", "metric_00000007"),
      timeRange: { start: seconds(pointsMs), end: seconds(pointsMs + 3 * hourMs) },
      downsample: { aggregator: Aggregator.MEAN, period: "1m" },
    }),
    post("/v1/metrics:search"),
    header,
  ).grpc;

const thousands = (of: (count: number, sets: number, header: Record<string, string>) => { grpc: LoadRequest }) => {
  return (header: Record<string, string>) => of(1000, hosts / 1000, header).grpc;
};
const points = (header: Record<string, string>) => putPoints(1000, series, pointsMs, header).grpc;
const oneEvent = (header: Record<string, string>) => putEvents(1, hosts, header).grpc;

interface Line extends Work {
  name: string;
  /** Whether it stores instances. */
  events?: true;
}

const lines: Line[] = [
  { name: "entity searches", requests: each(searchEntities), connections: 8, count: 1 },
  { name: "metric queries", requests: each(searchMetrics), connections: 8, count: 1 },
  { name: "known models, 1,000 a request", requests: each(thousands(putModels)), connections: 2, count: 1000 },
  { name: "events, 1,000 a request", requests: each(thousands(putEvents)), connections: 2, count: 1000, events: true },
  {
    name: "events, 1,000 a request, three tenants",
    requests: each(thousands(putEvents), "own"),
    connections: 2,
    count: 1000,
    events: true,
  },
  { name: "events, one a request", requests: each(oneEvent), connections: 21, count: 1, events: true },
  { name: "points, 1,000 a request", requests: each(points), connections: 2, count: 1000 },
];

let acknowledged = 0;
async function measure(line: Line, size: Size, countMs: number): Promise<FleetOutcome> {
  const outcome = await fleet.run(line, size, countMs);
  if (line.events) acknowledged += outcome.stored;
  return outcome;
}

/** Entities, events and series are made, and known to each server, before anything counts. */
async function prepare(): Promise<void> {
  const models = { name: "models", requests: each(thousands(putModels), "own"), connections: 1, count: 1000 };
  await measure(models, 1, 1000);
  for (const line of lines.toReversed()) for (const size of [3, 2, 1] as const) await measure(line, size, 400);
}

/** All in turns; each round begins with another number of servers. */
async function rounds(): Promise<Map<string, FleetOutcome[][]>> {
  const seen = new Map(lines.map(({ name }) => [name, sizes.map((): FleetOutcome[] => [])]));
  for (let round = 0; round < settings.rounds; round++) {
    const shift = round % sizes.length;
    const order = [...sizes.slice(shift), ...sizes.slice(0, shift)];
    await fleet.rest();
    for (const line of lines) {
      for (const size of order) seen.get(line.name)?.[size - 1]?.push(await measure(line, size, settings.countMs));
    }
  }
  return seen;
}

const whole = (number: number) => Math.round(number).toLocaleString("en");
const costs = (number: number) => (number < 10 ? number.toFixed(2) : whole(number));

/** Median, and in brackets the least and the most, of the relation to one server round by round. */
function ratio(of: readonly FleetOutcome[], one: readonly FleetOutcome[]): string {
  const all = of.map(({ itemsPerSec }, i) => itemsPerSec / (one[i]?.itemsPerSec ?? Number.NaN));
  return `${median(all).toFixed(2)} (${Math.min(...all).toFixed(2)}–${Math.max(...all).toFixed(2)})`;
}

function tables(seen: Map<string, FleetOutcome[][]>): string {
  const rates: string[][] = [];
  const prices: string[][] = [];
  for (const [name, [one = [], two = [], three = []]] of seen) {
    const of = (member: keyof FleetOutcome) =>
      [one, two, three].map((outcomes) => median(outcomes.map((outcome) => outcome[member])));
    const [perSec = 0] = of("itemsPerSec");
    rates.push([name, whole(perSec), ratio(two, one), ratio(three, one), of("p99Ms").map(whole).join(" · ")]);
    prices.push([
      name,
      of("serverUs").map(costs).join(" · "),
      of("postgresUs").map(costs).join(" · "),
      of("waiting")
        .map((number) => number.toFixed(1))
        .join(" · "),
    ]);
  }
  const rateHead = ["", "one server, a second", "two, to one", "three, to one", "p99 ms, 1 · 2 · 3 servers"];
  const priceHead = ["", "servers, µs an item, 1 · 2 · 3", "PostgreSQL, µs an item", "connections waiting for a lock"];
  return `${markdownTable(rateHead, rates)}\n\n${markdownTable(priceHead, prices)}`;
}

/** From the answer to the message, where the watch is at the server that stored the change, and where it is at another. */
async function watched(): Promise<string> {
  const urlOf = (i: number) => `http://127.0.0.1:${servers[i]?.port}`;
  const rows: string[][] = [];
  for (const [name, at] of [
    ["the same server", 0],
    ["another server", 1],
  ] as const) {
    const how = { watchers: 4, changesPerSec: 100, forMs: settings.countMs * 3, watchedUrl: urlOf(at) };
    const { fromAnswerMs } = await watchLatency(urlOf(0), key, how);
    rows.push([
      name,
      String(fromAnswerMs.length),
      ...[0.5, 0.99].map((share) => quantileOf(fromAnswerMs, share).toFixed(0)),
    ]);
  }
  return markdownTable(["watch at", "messages", "p50 ms", "p99 ms"], rows);
}

console.log(`${commandOf("scaling", args)}\n`);
for (const line of [
  "Three servers run all the time. Three generators send to the first, to the first two or to all of them; the connections",
  "are as many in all. All share all processors with PostgreSQL.",
  ...machineFacts(database.version, true),
  `medians of ${settings.rounds} rounds of ${settings.countMs / 1000} s; no TLS; gRPC; one request in work on each connection`,
]) {
  console.log(line);
}
const before = await fleet.idle(3000);
await prepare();
const seen = await rounds();
const connections = [...(await fleet.connections())].map(([name, count]) => `${name} ${count}`);
const [row] = await database.sql<[{ count: number }]>`select count(*)::float8 as count from instances`;
if (row.count !== acknowledged) throw new Error(`${acknowledged} events were acknowledged, ${row.count} are stored`);
console.log(`\n${tables(seen)}\n\n${await watched()}\n`);
const refused = [...seen.values()].flat(2).reduce((sum, outcome) => sum + outcome.refused, 0);
console.log(
  `A server that nobody asks: ${before.serverMs.toFixed(1)} ms of processor time a second, ${before.postgresMs.toFixed(1)} ms of PostgreSQL's, ${before.transactions.toFixed(1)} transactions.`,
);
console.log(`Connections of three servers under load: ${connections.join(", ")}.`);
const sizesOf = await fleet.sizes(["entities", "events", "occurrences", "instances"]);
console.log(
  `Bytes a row with its indexes: ${[...sizesOf].map(([name, bytes]) => `${name} ${whole(bytes)}`).join(", ")}.`,
);
console.log(`Memory of each server at the end, MB: ${(await fleet.memory()).map(whole).join(", ")}.`);
console.log(`All ${acknowledged} acknowledged events are stored; ${refused} requests were refused.`);
await fleet[Symbol.asyncDispose]();
