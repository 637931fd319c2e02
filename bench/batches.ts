// 1,000 events, and 1,000 models, a request, beside three plain statements that store as many events.
import { putEvents, putModels } from "./support/events.ts";
import { counted, startIngest } from "./support/ingest.ts";
import { race } from "./support/race.ts";

const count = 1000;
const sets = 16;
const clients = 4;

await using ingest = await startIngest(
  "batches",
  [
    "1,000 a request, 4 clients, over 16,000 entities: PutEvents of new instances of known events, and PutModels of known,",
    "unchanged entities. Beside them 4 plain clients of PostgreSQL that store 1,000 events in a transaction of three statements",
    "(new events, occurrences, instances) with the same keys, in tables with the same indexes. Server, generator and PostgreSQL",
    "share all processors.",
  ],
  { rounds: 3, seconds: 6 },
);
const { key } = ingest.database;
const calls = { event: putEvents(count, sets, key), model: putModels(count, sets, key) };
await ingest.prepare(calls.event, 2 * sets, { as: "events", count });
await ingest.prepare(calls.model, 2 * sets, { as: "models", count });
await ingest.plain("three statements", clients, count);

const plain = "three plain statements";
const line = (item: "event" | "model", protocol: "gRPC" | "/v1", aim: number) => ({
  name: `${item}s, ${protocol}`,
  aims: [{ to: plain, of: "rate", aim } as const],
  run: () => ingest.put(calls[item][protocol === "gRPC" ? "grpc" : "rest"], clients, { as: `${item}s`, count }),
});
const runners = [
  { name: plain, run: () => ingest.plain("three statements", clients, count) },
  line("event", "gRPC", 0.5),
  line("event", "/v1", 0.4),
  line("model", "gRPC", 1),
  line("model", "/v1", 1),
];
console.log(`\n${await race(runners, ingest.settings, "item")}\n`);
console.log(await counted(ingest, sets * count));
