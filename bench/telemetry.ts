// What metrics and traces cost: the same read with neither, with metrics, and with traces of every call.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { EventQueryService, GetEventRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { callsOf } from "./support/calls.ts";
import { startChild } from "./support/child.ts";
import { type Competitor, compare } from "./support/compare.ts";
import { startDatabase } from "./support/database.ts";
import { startGenerator } from "./support/generator.ts";
import { machineFacts, move } from "./support/machine.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { comparisonTable } from "./support/table.ts";

const id = "c3RhdGUtb2YtdGhlLWV2ZW50LTE=";
const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 7, countMs: 1500 });
await using stack = new AsyncDisposableStack();
process.once("SIGINT", () => void stack.disposeAsync().finally(() => process.exit(130)));
const database = stack.use(await startDatabase());

// The collector below is this process; it takes nothing of the servers' processor.
move(process.pid, "generator");
/** Takes traces and forgets them. */
const collector = createServer((request, response) => request.resume().once("end", () => response.end("{}")));
await once(collector.listen(0, "127.0.0.1"), "listening");
stack.defer(() => void collector.close().closeAllConnections());
const collectorUrl = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;

async function serve(env: Record<string, string>): Promise<Competitor["server"]> {
  const child = stack.use(startChild("server", "servers/belfry-read.ts", { ...database.env, ...env }));
  return { child, ...(await child.ask<{ port: number }>()) };
}

const servers = {
  neither: await serve({}),
  // The same once more: how far its ratio is from 1 is what processes of the same program differ by.
  "neither, again": await serve({}),
  metrics: await serve({ BELFRY_METRICS_ADDRESS: "0" }),
  traces: await serve({ OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl }),
};
const rest = { method: "GET", path: `/v1/events/${id}` } as const;
const calls = callsOf(EventQueryService.method.getEvent, create(GetEventRequestSchema, { id }), rest, database.key);
const generator = stack.use(startGenerator(settings.generator, false));
const competitors = [
  { protocol: "gRPC", request: calls.grpc },
  { protocol: "/v1", request: calls.rest },
].flatMap(({ protocol, request }) =>
  Object.entries(servers).map(
    ([name, server]): Competitor => ({
      name: `${protocol}, ${name}`,
      ...{ server, request },
      ...(name !== "neither" && { baselines: [`${protocol}, neither`] }),
    }),
  ),
);
console.log(
  `${commandOf("telemetry", args)}\n\nGetEvent as in the bench read; traces of every call go to a collector that forgets them.`,
);
for (const line of machineFacts(database.version)) console.log(line);
console.log(`\n${comparisonTable(await compare(competitors, generator, settings), undefined)}`);
