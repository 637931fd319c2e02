import { create } from "@bufbuild/protobuf";
import { type Event, EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type ExportLogsServiceResponse,
  ExportLogsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ResourceLogsSchema, ScopeLogsSchema } from "#gen/opentelemetry/proto/logs/v1/logs_pb.ts";
import type { EventItem } from "../../events/ingest.ts";
import { type PutKind, putList } from "../../receiver/put.ts";
import type { OperationCall } from "../integration.ts";
import type { Walk } from "./fields.ts";
import type { Identities } from "./identities.ts";
import { eventOfRecord, type LogEvent } from "./log-events.ts";
import { rejections } from "./rejections.ts";
import type { ResourceModels } from "./resource-models.ts";
import { eachRecord, entityOf, type RecordPart, type ResourcePart } from "./resource-parts.ts";

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

const parts = {
  scopes: ResourceLogsSchema.field.scopeLogs.number,
  records: ScopeLogsSchema.field.logRecords.number,
  what: "log records",
};

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
  await eachRecord(body, { ...parts, max: recordsMax }, call, first, ({ resource, bytes: record }) => {
    const event = eventOfRecord(record, first, false);
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
  await eachRecord(body, { ...parts, max: recordsMax }, call, walk, (part) => {
    const event = eventOfRecord(part.bytes, walk, true);
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
