import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type Event, EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type ExportLogsServiceResponse,
  ExportLogsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ResourceLogsSchema, ScopeLogsSchema } from "#gen/opentelemetry/proto/logs/v1/logs_pb.ts";
import type { EventItem } from "../../events/ingest.ts";
import { type PutKind, putList } from "../../receiver/put.ts";
import { refusalOf } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
import type { Walk } from "./fields.ts";
import type { Identities } from "./identities.ts";
import { eventOfRecord, type LogEvent } from "./log-events.ts";
import { rejections } from "./rejections.ts";
import type { ResourceModels } from "./resource-models.ts";
import { entityOf, members, type ResourcePart, resourcesIn } from "./resource-parts.ts";

const nameless = "a log record is taken when it is an event: it has an event_name, or the attribute event.name";

/** What exports of logs are stored with. */
export interface LogsExport {
  events: PutKind<typeof EventSchema, EventItem>;
  models: ResourceModels;
  identities: Identities;
  /** Log records that a request may have. */
  recordsMax: number;
}

/** So many events are made at a time, or of log records that take so many bytes. */
const [eventsAtOnce, bytesAtOnce] = [1000, 1024 * 1024];

const scopes = ResourceLogsSchema.field.scopeLogs.number;
const records = ScopeLogsSchema.field.logRecords.number;

/** Log records, scopes and resources that a request may have for each log record. */
const partsEach = 4;

interface RecordPart {
  resource: ResourcePart;
  bytes: Uint8Array;
}

/** Each log record of an ExportLogsServiceRequest; undefined for each resource and scope, and where it is time for a pause. */
function* partsOf(request: Uint8Array, walk: Walk): Generator<RecordPart | undefined> {
  for (const found of resourcesIn(request, walk)) {
    yield undefined;
    if (found === undefined) continue;
    const { resource } = found;
    for (const scope of members(found.bytes, scopes, walk)) {
      yield undefined;
      if (scope === undefined) continue;
      for (const bytes of members(scope, records, walk)) yield bytes && { resource, bytes };
    }
  }
}

/** Calls `take` with each log record, and the event that it is, its content only where asked for. @throws code 3 where it is no Protobuf, code 8 where it holds too much */
async function eachRecord(
  request: Uint8Array,
  recordsMax: number,
  call: OperationCall,
  walk: Walk,
  content: boolean,
  take: (part: RecordPart, event: LogEvent | undefined) => Promise<void> | undefined,
): Promise<void> {
  const tooMany = (max: number, what: string) =>
    refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${max} ${what}; send fewer at once`);
  const partsMax = recordsMax * partsEach;
  let [count, parts] = [0, 0];
  for (const part of partsOf(request, walk)) {
    const wait = call.pace();
    if (wait !== undefined) await wait;
    parts += 1;
    if (parts > partsMax) throw tooMany(partsMax, "log records, scopes and resources");
    if (part === undefined) continue;
    count += 1;
    if (count > recordsMax) throw tooMany(recordsMax, "log records");
    const taken = take(part, eventOfRecord(part.bytes, walk, content));
    if (taken !== undefined) await taken;
  }
}

/** Stores the log records that are events, and the entities that they are of. @throws code 3 where it is no Protobuf, code 8 where it holds too much */
export async function exportLogs(
  { events, models, identities, recordsMax }: LogsExport,
  body: Uint8Array,
  call: OperationCall,
  walkOf: () => Walk,
): Promise<ExportLogsServiceResponse> {
  const now = Math.floor(call.nowMs());
  const resources = new Set<ResourcePart>();
  // A request is read to its end before some of it is stored, and again while it is: never are all its events held.
  const first = walkOf();
  await eachRecord(body, recordsMax, call, first, false, ({ resource }, event) => {
    if (event === undefined || event.broken !== undefined) return undefined;
    resources.add(resource);
    return identities.settle(resource, call, first);
  });
  // Models are the same when they are sent again: whoever hears that they failed must not have stored events.
  await models.put(resources, call, walkOf());
  const mistakes = rejections();
  let [list, bytes, others]: [Event[], number, number] = [[], 0, 0];
  async function store() {
    const outcome = await putList(events, call.sender, list, { bytes, detailed: true });
    for (const { error, index } of outcome.failed) mistakes.add(list[index]?.name ?? "", error);
    call.count("stored", outcome.succeeded);
    [list, bytes] = [[], 0];
  }
  const walk = walkOf();
  function add(part: RecordPart, { name, severity, status, body, metadata: metadataFields, timeMs }: LogEvent) {
    const { dimensions } = entityOf(part.resource, walk);
    const timestamp = BigInt(timeMs === 0 ? now : timeMs);
    list.push(create(EventSchema, { name, dimensions, timestamp, severity, status, body, metadataFields }));
    bytes += part.bytes.length;
    return list.length >= eventsAtOnce || bytes >= bytesAtOnce ? store() : undefined;
  }
  await eachRecord(body, recordsMax, call, walk, true, (part, event) => {
    if (event === undefined) others += 1;
    else if (event.broken !== undefined) mistakes.add(event.name, event.broken);
    else {
      const settling = identities.settle(part.resource, call, walk);
      return settling === undefined ? add(part, event) : settling.then(() => add(part, event));
    }
    return undefined;
  });
  if (list.length > 0) await store();
  const refused = mistakes.count + others;
  call.count("refused", refused);
  if (refused === 0) return create(ExportLogsServiceResponseSchema);
  const errorMessage = [others > 0 ? nameless : "", mistakes.text()].filter((each) => each !== "").join("; ");
  return create(ExportLogsServiceResponseSchema, {
    partialSuccess: { rejectedLogRecords: BigInt(refused), errorMessage },
  });
}
