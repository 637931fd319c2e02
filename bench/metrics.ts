// Metric points: how fast they are stored, read back, and what they take, beside other stores and plain SQL.
import { parseArgs } from "node:util";
import { connectOnce } from "../src/db/connect.ts";
import { startChild } from "./support/child.ts";
import { startDatabase } from "./support/database.ts";
import { startGenerator } from "./support/generator.ts";
import { machineFacts } from "./support/machine.ts";
import { manySeries } from "./support/many-series.ts";
import { plainTable } from "./support/plain-points.ts";
import { fleetMetrics, fleetTable } from "./support/point-fleet.ts";
import { ingestTable, soakLines, type Target } from "./support/point-ingest.ts";
import { integrationTable, integrationTargets } from "./support/point-integrations.ts";
import { mergingTable } from "./support/point-merging.ts";
import { queryLines, sizeLines } from "./support/point-queries.ts";
import { pointStores } from "./support/point-stores.ts";
import { labelsOf, putPoints } from "./support/points.ts";
import { progress } from "./support/progress.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "1.2" },
    series: { type: "string", default: "10000" },
    stored: { type: "string", default: "1000" },
    only: { type: "string", default: "ingest,queries,sizes" },
    profile: { type: "string" },
    hosts: { type: "string", default: "3000" },
    soak: { type: "string" },
  },
});
const parts = values.only.split(",");
const series = Number(values.series);
// The largest request has a point of each: with fewer series its times would run days ahead of those of other requests.
if (!(series >= 10_000)) throw new Error("--series must be at least 10000");

await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase());
// What waits is to be measured, not refused.
// Over remote write the labels of a host are its entity, as in PutMetrics and in the resources of OTLP.
const entityLabels = { BELFRY_ENTITY_LABELS: Object.keys(labelsOf(0)).join() };
const env = { ...database.env, ...entityLabels, BELFRY_INGEST_WAIT: "30s", BELFRY_SERIES_MAX: "10000000" };
const server = stack.use(
  startChild(
    "server",
    "servers/belfry.ts",
    env,
    values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`],
  ),
);
const { port } = await server.ask<{ port: number }>();
console.log(`npm run bench -- metrics ${process.argv.slice(2).join(" ")}\n`);
for (const line of machineFacts(database.version)) console.log(line);

const baseMs = Date.now() - 23 * 3_600_000;
const generator = stack.use(startGenerator("node", true));
const ours = (form: "grpc" | "json", metricsEach?: number): Target => ({
  name: form === "grpc" ? "Belfry, gRPC" : "Belfry, JSON",
  port,
  put: (count, all, fromMs) => putPoints(count, all, fromMs, database.key, metricsEach)[form],
  cpu: async () => (await server.ask<{ cpuUs: number }>("cpu")).cpuUs,
});
const measure = { generator, series, baseMs, rounds: Number(values.rounds), countMs: Number(values.seconds) * 1000 };

if (values.soak !== undefined) {
  const look = { server, database, minutes: Number(values.soak) };
  for await (const line of soakLines(ours("grpc"), measure, look)) console.log(line);
} else {
  if (parts.includes("ingest")) {
    const others = await pointStores(stack);
    const plain = stack.use(await plainTable(database.env.DATABASE_URL ?? "", series, baseMs));
    console.log(await ingestTable([ours("grpc"), ours("json"), ...others], plain, measure));
  }
  // One connection, without the limits of those that serve.
  const { sql, close } = connectOnce(database.env.DATABASE_URL ?? "", "bench");
  stack.defer(() => close());
  const asked = { sql, url: `http://127.0.0.1:${port}`, key: database.key, stored: Number(values.stored) };
  if (parts.includes("fleet")) {
    const targets = [ours("json", fleetMetrics), ours("grpc", fleetMetrics)];
    console.log(await fleetTable(targets, { ...measure, hosts: Number(values.hosts) }));
  }
  if (parts.includes("many")) {
    const { key } = database;
    console.log(await manySeries(ours("grpc"), { ...measure, url: `http://127.0.0.1:${port}`, key }));
  }
  if (parts.includes("integrations")) {
    const grpc = ours("grpc");
    const others = (await pointStores(stack)).filter(({ name }) => name.startsWith("Prometheus"));
    const foreign = integrationTargets(database.key).map((each) => ({ ...grpc, ...each }));
    console.log(await integrationTable([grpc, ...foreign, ...others], measure));
  }
  if (parts.includes("merging")) console.log(await mergingTable(sql, database.pid, series, 4));
  if (parts.includes("queries") || parts.includes("sizes")) progress("searches and sizes");
  if (parts.includes("queries")) for await (const line of queryLines(asked)) console.log(line);
  if (parts.includes("sizes")) for await (const line of sizeLines(sql)) console.log(line);
}
