// PutEvents of one event: a new instance of one of 10,000 known events each time.
import { runBench } from "./support/bench.ts";
import { checkStored, putEvents } from "./support/events.ts";

await runBench({
  name: "put",
  notes: [
    "PutEvents of one event, a new instance each time, over 10,000 entities; answered when it is committed and on disk.",
    "Fastify and grpc-js read the same request and answer the same, and store nothing: their lines show what is left",
    "for the database, not what could be had.",
  ],
  program: "belfry",
  calls: (key) => putEvents(1, 10_000, key),
  check: checkStored,
  rounds: 7,
  seconds: 1.5,
});
