// A read that touches no SQL: what the port, the pipeline and the protocols cost.
import { create } from "@bufbuild/protobuf";
import { EventQueryService, GetEventRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { runBench } from "./support/bench.ts";
import { callsOf } from "./support/calls.ts";

const id = "c3RhdGUtb2YtdGhlLWV2ZW50LTE=";

await runBench({
  name: "read",
  notes: [
    "GetEvent of one event with one occurrence. No RPC of the product answers without SQL, so this one is answered by",
    "bench/servers/belfry-read.ts from memory, behind the product's own port, key check, pipeline and protocols.",
    "Fastify and grpc-js answer the same event from memory and do nothing else. All log to the same kind of pino logger:",
    "Fastify as it does by itself (two lines a request) and, in the second line, one line made by hand, as ours and grpc-js.",
  ],
  program: "belfry-read",
  calls: (key) =>
    callsOf(
      EventQueryService.method.getEvent,
      create(GetEventRequestSchema, { id }),
      { method: "GET", path: `/v1/events/${id}` },
      key,
    ),
  rounds: 7,
  seconds: 1.5,
});
