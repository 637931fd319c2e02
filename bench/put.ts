// One event, and one model, a request, from few and from many clients, beside the plain insert of a row.
import { putEvents, putModels } from "./support/events.ts";
import { counted, startIngest } from "./support/ingest.ts";
import { type Aim, race } from "./support/race.ts";

const hosts = 10_000;

await using ingest = await startIngest(
  "put",
  [
    "PutEvents of one event, a new instance of one of 10,000 known events each time, and PutModels of one known, unchanged",
    "entity; answered when it is committed and on disk. Beside them a plain client of PostgreSQL that inserts one row, of the",
    "columns and the key of `instances`, over 8 connections, and one that does so by begin, insert and commit over one.",
    "Server, generator and PostgreSQL share all processors.",
  ],
  { rounds: 3, seconds: 3 },
);
const { key } = ingest.database;
await ingest.prepare(putEvents(1000, hosts / 1000, key), hosts / 1000, { as: "events", count: 1000 });
await ingest.prepare(putModels(1000, hosts / 1000, key), hosts / 1000, { as: "models", count: 1000 });
const protocols = { gRPC: "grpc", "/v1": "rest" } as const;
const calls = { event: putEvents(1, hosts, key), model: putModels(1, hosts, key) };
const insert = "plain insert, 8 connections";
const transaction = "begin; insert; commit, 1 connection";
const aimsOf = (clients: number): Aim[] => {
  if (clients === 1) return [{ to: transaction, of: "p50", aim: 3 }];
  return clients < 64 ? [] : [{ to: insert, of: "rate", aim: 0.35 }];
};
const puts = ([1, 8, 64, 256] as const).flatMap((clients) =>
  (Object.keys(protocols) as (keyof typeof protocols)[]).map((protocol) => ({
    name: `event, ${protocol}, ${clients} client${clients > 1 ? "s" : ""}`,
    aims: aimsOf(clients),
    run: () => ingest.put(calls.event[protocols[protocol]], clients, { as: "events", count: 1 }),
  })),
);
const models = (Object.keys(protocols) as (keyof typeof protocols)[]).map((protocol) => ({
  name: `model, ${protocol}, 64 clients`,
  aims: [{ to: insert, of: "rate", aim: 0.35 } as const],
  run: () => ingest.put(calls.model[protocols[protocol]], 64, { as: "models", count: 1 }),
}));
const runners = [
  { name: insert, run: () => ingest.plain("insert", 8, 1) },
  { name: transaction, run: () => ingest.plain("begin; insert; commit", 1, 1) },
  ...puts,
  ...models,
];
console.log(`\n${await race(runners, ingest.settings, "item")}\n`);
console.log(await counted(ingest, hosts));
