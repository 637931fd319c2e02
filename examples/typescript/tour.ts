// Sends a model and events over gRPC, streams 1,000 more, finds them again, and shows what mistakes are answered with.
//
//     node examples/typescript/tour.ts [address] [CA certificate file] [key file]
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { Severity, SeveritySchema, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";

// `npm start` keeps its address, certificate and first key here.
const kept = existsSync(".belfry/server.url") ? readFileSync(".belfry/server.url", "utf8").trim() : undefined;
const [address = kept ?? "https://localhost:8443", caFile = ".belfry/ca.pem", keyFile = ".belfry/admin.key"] =
  process.argv.slice(2);
const key = readFileSync(keyFile, "utf8").trim();
const nowMs = () => BigInt(Date.now());

/** A way to the server that sends the key with every call. createConnectTransport and createGrpcWebTransport fit as well. */
function openTransport(key: string) {
  const addKey: Interceptor = (next) => (request) => {
    request.header.set("service-api-key", key);
    return next(request);
  };
  return createGrpcTransport({
    baseUrl: address,
    nodeOptions: { ca: readFileSync(caFile) },
    interceptors: [addKey],
    defaultTimeoutMs: 10_000,
  });
}

/** Calls again while the server asks for it; sending data again is harmless: what is stored already changes nothing. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (let waitMs = 200; ; waitMs *= 2) {
    try {
      return await call();
    } catch (error) {
      const { code } = ConnectError.from(error);
      if ((code !== Code.Unavailable && code !== Code.ResourceExhausted) || waitMs > 5000) throw error;
      await sleep(waitMs);
    }
  }
}

const dimensions = { source: "typescript-tour" };

async function putModel(receiver: Client<typeof DataReceiverService>) {
  const model = {
    timestamp: nowMs(),
    dimensions,
    metadataFields: { name: "TypeScript tour", type: "host" },
  };
  const { message } = await insist(() => receiver.putModels({ models: [model] }));
  console.log(message);
}

/** Two events, one of which is not taken: it is named, and the other one is stored. */
async function putEvents(receiver: Client<typeof DataReceiverService>) {
  const events = [
    {
      name: "disk full",
      timestamp: nowMs(),
      dimensions,
      severity: Severity.ERROR,
      status: Status.OPEN,
      summary: "97 % of /var is used",
    },
    { name: "disk slow", timestamp: nowMs(), summary: "no word of whose disk" },
  ];
  const { message, failedEvents } = await insist(() => receiver.putEvents({ detailedResponse: true, events }));
  console.log(message);
  for (const { error } of failedEvents) console.log(`  not taken: ${error}`);
}

/** `count` instances of ten events, in one call. */
async function streamEvents(receiver: Client<typeof DataReceiverService>, count: number) {
  const startMs = nowMs() - BigInt(count);
  async function* requests() {
    for (let i = 0; i < count; i++) {
      const value = {
        name: `job ${i % 10} is late`,
        timestamp: startMs + BigInt(i),
        dimensions,
        severity: Severity.WARNING,
        status: Status.OPEN,
      };
      yield { event: { case: "canonical" as const, value } };
    }
  }
  const { message } = await insist(() => receiver.putEvent(requests(), { timeoutMs: 60_000 }));
  console.log(message);
}

async function findEntity(entities: Client<typeof EntityService>) {
  const filter = {
    field: "dimensions.source",
    operation: Operation.OP_EQUALS,
    value: { kind: { case: "stringValue" as const, value: dimensions.source } },
  };
  const query = { clause: { filter } };
  const found = await insist(() => entities.searchEntities({ searchInput: { query } }));
  for (const { id, name } of found.entities?.entities ?? []) console.log(`entity ${id} is ${name}`);
}

/** Every event seen since then, four a page. */
async function findEvents(events: Client<typeof EventQueryService>, sinceMs: bigint) {
  const sortBy = [{ byField: { field: "name", order: SortOrder.ASC } }];
  let cursor = "";
  for (let more = true; more; ) {
    const query = { timeRange: { start: sinceMs }, sortBy, pageInput: { limit: 4, cursor } };
    const { results, pageInfo } = await insist(() => events.searchEvents({ query }));
    for (const { id, name, occurrences } of results) {
      const { severity = Severity.DEFAULT, instanceCount } = occurrences[0] ?? {};
      console.log(`  ${name}: ${SeveritySchema.value[severity]?.name}, ${instanceCount} times, ${id}`);
    }
    cursor = pageInfo?.endCursor ?? "";
    more = pageInfo?.hasNext ?? false;
    if (!more) console.log(`${pageInfo?.totalCount} events in all`);
  }
}

/** Makes a call that is refused, and says why: its code, its message, and each field that is wrong. */
async function showMistake(what: string, call: () => Promise<unknown>) {
  const error = await call().then(() => undefined, ConnectError.from);
  if (error === undefined) return;
  console.log(`${what}: ${Code[error.code]}: ${error.rawMessage}`);
  for (const { fieldViolations } of error.findDetails(BadRequestSchema)) {
    for (const { field, description } of fieldViolations) console.log(`  field ${field}: ${description}`);
  }
}

const sinceMs = nowMs() - 1000n;
const way = openTransport(key);
const receiver = createClient(DataReceiverService, way);
const events = createClient(EventQueryService, way);
await putModel(receiver);
await putEvents(receiver);
await streamEvents(receiver, 1000);
await findEntity(createClient(EntityService, way));
await findEvents(events, sinceMs);
await showMistake("no query", () => events.searchEvents({}));
const cutShort = createClient(EventQueryService, openTransport(key.slice(0, -1)));
await showMistake("a key cut short", () => cutShort.getEvent({ id: "x" }));
