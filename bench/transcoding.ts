// Reading and writing JSON, and matching routes: against JSON.parse, JSON.stringify and protobuf-es in the same run.
// Run: node bench/transcoding.ts
import {
  createRegistry,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { routes } from "#gen/routes.ts";
import { jsonReader } from "../src/transcoding/json/read-json.ts";
import { next, scanOf } from "../src/transcoding/json/scan.ts";
import { jsonWriter } from "../src/transcoding/json/write-json.ts";
import type { Route } from "../src/transcoding/routes/binding.ts";
import { matcher } from "../src/transcoding/routes/match.ts";

const registry = createRegistry();
const reader = jsonReader({ registry });
const writer = jsonWriter(registry);

function event(i: number) {
  return {
    timestamp: String(1_700_000_000_000 + i),
    name: `disk usage ${i % 20}`,
    dimensions: { host: `web-${i % 50}.example.net`, disk: `/dev/sd${"abcdef"[i % 6]}`, zone: "eu-central-1a" },
    metadataFields: {
      used: 0.93 + i / 10_000,
      threshold: 0.9,
      labels: ["a", "b"],
      "run-book": `https://wiki/disk/${i}`,
    },
    type: "threshold",
    summary: `disk ${i % 6} of web-${i % 50} is nearly full`,
    body: `Used space went above 90 % at ${i}: "/var" holds 93 % of 200 GiB.\nClean up or extend it.`,
    severity: "SEVERITY_WARNING",
    status: "STATUS_OPEN",
  };
}

function clause(depth: number): object {
  const leaf = {
    filter: { field: `dimensions.host${depth}`, operation: "OP_EQUALS", value: [`web-${depth}`, depth, true] },
  };
  if (depth === 0) return leaf;
  return depth % 3 === 0
    ? { not: { clause: clause(depth - 1) } }
    : { [depth % 3 === 1 ? "and" : "or"]: { clauses: [clause(depth - 1), leaf] } };
}

const samples: [string, DescMessage, object][] = [
  ["one event", PutEventsRequestSchema, { events: [event(1)] }],
  ["1,000 events", PutEventsRequestSchema, { events: Array.from({ length: 1000 }, (_, i) => event(i)) }],
  ["deep clause", ClauseSchema, clause(30)],
];

/** Seconds of this thread's own time that one call of each takes: the best of several rounds, taken in turns. */
function time<K extends string>(subjects: Record<K, () => unknown>, roundMs = 100, rounds = 9): Record<K, number> {
  const names = Object.keys(subjects) as K[];
  const calls = new Map(names.map((name) => [name, 1]));
  const best = Object.fromEntries(names.map((name) => [name, Number.POSITIVE_INFINITY])) as Record<K, number>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      for (;;) {
        const count = calls.get(name) ?? 1;
        const start = process.threadCpuUsage();
        for (let i = 0; i < count; i++) subjects[name]();
        const { user, system } = process.threadCpuUsage(start);
        const tookMs = (user + system) / 1000;
        if (tookMs > roundMs / 2) {
          best[name] = Math.min(best[name], tookMs / 1000 / count);
          break;
        }
        calls.set(name, Math.ceil(count * Math.min(20, roundMs / Math.max(tookMs, 0.1))));
      }
    }
  }
  return best;
}

for (const [name, desc, json] of samples) {
  const text = JSON.stringify(json);
  const bytes = Buffer.from(text);
  const read = reader.message(desc);
  const write = writer.message(desc);
  const parse = () => {
    const s = scanOf(bytes.toString("utf8"), { bytes });
    next(s);
    return read(s);
  };
  // As a handler makes it: its strings are not slices of a request's text.
  const message: Message = fromBinary(desc, toBinary(desc, parse() as unknown as Message));
  const written = JSON.stringify(write(message as never));
  const plain = JSON.parse(written);
  const figures = {
    read: time({
      ours: parse,
      native: () => JSON.parse(bytes.toString("utf8")),
      es: () => fromJsonString(desc, bytes.toString("utf8"), { registry }),
    }),
    write: time({
      ours: () => JSON.stringify(write(message as never)),
      native: () => JSON.stringify(plain),
      es: () => toJsonString(desc, message, { alwaysEmitImplicit: true, registry }),
    }),
  };
  for (const [what, { ours, native, es }] of Object.entries(figures)) {
    const size = what === "read" ? bytes.length : written.length;
    const mb = (sec: number) => `${(size / sec / 1e6).toFixed(0)} MB/s`.padStart(9);
    console.log(
      `${what.padEnd(5)} ${name.padEnd(12)} ${String(size).padStart(8)} B  ours ${mb(ours)}  JSON ${mb(native)} (${(native / ours).toFixed(2)}×)  protobuf-es ${mb(es)} (${(es / ours).toFixed(2)}×)`,
    );
  }
}

const match = matcher(routes as readonly Route[]);
const requests = routes.map(
  ({ verb, template }) => [verb, template.replace(/\{[^}]*\}/g, "0190b2c4-7d1e-7cc3-98c4-dc0c0c07398f")] as const,
);
const { match: perRound } = time({
  match: () => {
    for (const [verb, url] of requests) {
      const route = match.find(verb, url);
      if (route === undefined) throw new Error(url);
      for (const variable of route.variables) match.captured(variable);
    }
  },
});
console.log(`match one of ${routes.length} routes: ${((perRound / requests.length) * 1e9).toFixed(0)} ns`);
