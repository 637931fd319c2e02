// PutEvents of 1,000 events a request.
import { runBench } from "./support/bench.ts";
import { checkStored, putEvents } from "./support/events.ts";

const count = 1000;

await runBench({
  name: "batches",
  notes: [
    "PutEvents of 1,000 events a request, over 16,000 entities: the first 16 requests are their first sight, all further",
    "ones are new instances of known events. Fastify and grpc-js read the same request and store nothing.",
  ],
  program: "belfry",
  calls: (key) => putEvents(count, 16, key),
  items: { name: "events", count },
  check: (database, answered) => checkStored(database, answered * count),
  rounds: 3,
  seconds: 4,
});
