import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type Event, EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type ExportLogsServiceRequest,
  type ExportLogsServiceResponse,
  ExportLogsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import type { EventItem } from "../../events/ingest.ts";
import { type PutKind, putList } from "../../receiver/put.ts";
import { refusalOf } from "../../wire/status.ts";
import { cut } from "../foreign-texts.ts";
import type { Call } from "../integration.ts";
import { eventOfRecord } from "./log-events.ts";
import { rejections } from "./rejections.ts";
import { entityOfResource, type ResourceEntity } from "./resource.ts";
import type { ResourceModels } from "./resource-models.ts";

const nameless = "a log record is taken when it is an event: it has an event_name, or the attribute event.name";

/** What exports of logs are stored with. */
export interface LogsExport {
  events: PutKind<typeof EventSchema, EventItem>;
  models: ResourceModels;
  /** Log records that a request may have. */
  recordsMax: number;
}

/** Stores the log records that are events, and the entities that they are of. */
export async function exportLogs(
  { events, models, recordsMax }: LogsExport,
  { resourceLogs }: ExportLogsServiceRequest,
  call: Call,
  bytes: number,
): Promise<ExportLogsServiceResponse> {
  const now = Math.floor(call.nowMs());
  const found: Event[] = [];
  const entities: ResourceEntity[] = [];
  let others = 0;
  let records = 0;
  for (const { resource, scopeLogs } of resourceLogs) {
    const entity = entityOfResource(resource);
    const before = found.length;
    for (const record of scopeLogs.flatMap(({ logRecords }) => logRecords)) {
      const wait = call.pace();
      if (wait !== undefined) await wait;
      records += 1;
      if (records > recordsMax)
        throw refusalOf(
          Code.ResourceExhausted,
          413,
          `a request may have at most ${recordsMax} log records; send fewer at once`,
        );
      const event = eventOfRecord(record);
      if (event === undefined) {
        others += 1;
        continue;
      }
      const { name, severity, body, metadata, timeMs } = event;
      const timestamp = BigInt(timeMs === 0 ? now : timeMs);
      const { dimensions } = entity;
      found.push(
        create(EventSchema, { name: cut(name, 255), dimensions, timestamp, severity, body, metadataFields: metadata }),
      );
    }
    if (found.length > before) entities.push(entity);
  }
  // Models are the same when they are sent again: whoever hears that they failed must not have stored events.
  await models.put(entities, call);
  const outcome = await putList(events, call.sender, found, { bytes, detailed: true });
  call.count("stored", outcome.succeeded);
  call.count("refused", outcome.failedCount + others);
  if (outcome.failedCount + others === 0) return create(ExportLogsServiceResponseSchema);
  const mistakes = outcome.failed.map(({ error, index }) => `${found[index]?.name}: ${error}`);
  const errorMessage = [...(others > 0 ? [nameless] : []), ...(mistakes.length > 0 ? [rejections(mistakes)] : [])].join(
    "; ",
  );
  return create(ExportLogsServiceResponseSchema, {
    partialSuccess: { rejectedLogRecords: BigInt(outcome.failedCount + others), errorMessage },
  });
}
