import type { JsonObject } from "@bufbuild/protobuf";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { LogRecord } from "#gen/opentelemetry/proto/logs/v1/logs_pb.ts";
import { attributeKey } from "../foreign-keys.ts";
import { jsonObjectOf, textOf } from "./attributes.ts";

/** A log record that is an event. */
export interface LogEvent {
  name: string;
  /** ms since the epoch; 0: the sender gave none. */
  timeMs: number;
  severity: Severity;
  body: string;
  metadata: JsonObject;
}

const nameKey = "event.name";

/** The severities of OpenTelemetry come in fours; trace and debug are one here. */
function severityOf(number: number): Severity {
  if (number >= 21) return Severity.CRITICAL;
  if (number >= 17) return Severity.ERROR;
  if (number >= 13) return Severity.WARNING;
  if (number >= 9) return Severity.INFO;
  return number >= 1 ? Severity.DEBUG : Severity.DEFAULT;
}

/** The event that a log record is; undefined for one without an event's name. */
export function eventOfRecord(record: LogRecord): LogEvent | undefined {
  const { attributes, timeUnixNano, observedTimeUnixNano } = record;
  const name = record.eventName || textOf(attributes.find(({ key }) => key === nameKey)?.value);
  if (name === "") return undefined;
  const metadata = jsonObjectOf(attributes.filter(({ key }) => key !== "" && key !== nameKey));
  return {
    name,
    timeMs: Number((timeUnixNano || observedTimeUnixNano) / 1_000_000n),
    severity: severityOf(record.severityNumber),
    body: textOf(record.body),
    metadata: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [attributeKey(key), value])),
  };
}
