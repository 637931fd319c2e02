import type { JsonObject } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { LogRecordSchema } from "#gen/opentelemetry/proto/logs/v1/logs_pb.ts";
import { attributeKey } from "../foreign-keys.ts";
import { cut } from "../foreign-texts.ts";
import { type Attribute, attributeIn, hasKey, jsonIn, jsonOf, labelText } from "./attributes.ts";
import { delimited, fieldsOf, fieldsWithin, fixed64, next, valueMs, valueText, varint, type Walk } from "./fields.ts";

/** A log record that is an event. */
export interface LogEvent {
  name: string;
  /** ms since the epoch; 0: the sender gave none. */
  timeMs: number;
  severity: Severity;
  status: Status;
  body: string;
  metadata: JsonObject;
  /** The rule that it breaks; it was not read further. */
  broken: string | undefined;
}

const nameKey = "event.name";
const nameCharactersMax = 255;
const attributesMax = 1000;
/** Fields of a log record, attributes and those without a meaning here among them. */
const fieldsMax = 10_000;
/** The attributes of a log record together, and its body: as JSON an event may have a quarter of it. */
const partBytesMax = 256 * 1024;

const tooMany = (max: number, what: string) => `a log record may have at most ${max} ${what}`;
const tooLarge = (what: string) => `the ${what} of a log record may take at most ${partBytesMax} bytes`;

const { timeUnixNano, observedTimeUnixNano, severityNumber, body, attributes, eventName } = LogRecordSchema.field;

/** The severities of OpenTelemetry come in fours; trace and debug are one here. */
function severityOf(number: number): Severity {
  // A number below 0 is written as one of 64 bits.
  if (number < 1 || number >= 2 ** 31) return Severity.DEFAULT;
  if (number >= 21) return Severity.CRITICAL;
  if (number >= 17) return Severity.ERROR;
  if (number >= 13) return Severity.WARNING;
  return number >= 9 ? Severity.INFO : Severity.DEBUG;
}

/**
 * The event that a log record is; undefined for one without an event's name. @throws code 3 for what cannot be decoded
 * @param content whether body and metadata are read; where only the number of events counts, they are not
 */
export function eventOfRecord(record: Uint8Array, walk: Walk, content: boolean): LogEvent | undefined {
  const event: LogEvent = {
    name: "",
    timeMs: 0,
    severity: Severity.DEFAULT,
    status: Status.DEFAULT,
    body: "",
    metadata: {},
    broken: undefined,
  };
  // Where they lie. Most of what is refused has no name, and its attributes are not read.
  const places: [from: number, to: number][] = [];
  let named: Attribute | undefined;
  const lastField = walk.fields + fieldsMax;
  const text = { from: 0, to: 0 };
  let [observedMs, bytes] = [0, 0];
  const all = fieldsOf(record, walk);
  while (event.broken === undefined && next(all)) {
    const { field, type, from, to } = all;
    if (walk.fields > lastField) event.broken = tooMany(fieldsMax, "fields");
    else if (type === fixed64 && field === timeUnixNano.number) event.timeMs = valueMs(all);
    else if (type === fixed64 && field === observedTimeUnixNano.number) observedMs = valueMs(all);
    else if (type === varint && field === severityNumber.number) event.severity = severityOf(all.number);
    else if (type !== delimited) continue;
    else if (field === eventName.number) event.name = valueText(all, nameCharactersMax);
    else if (field === body.number) Object.assign(text, { from, to });
    else if (field === attributes.number) {
      bytes += to - from;
      if (bytes > partBytesMax) event.broken = tooLarge("attributes");
      else if (places.push([from, to]) > attributesMax) event.broken = tooMany(attributesMax, "attributes");
      if (named === undefined && hasKey(all, nameKey)) named = attributeIn(all);
    }
  }
  if (event.severity >= Severity.ERROR) event.status = Status.OPEN;
  if (event.name === "" && named !== undefined) event.name = labelText(jsonOf(named, nameCharactersMax));
  if (event.name === "" && event.broken === undefined) return undefined;
  event.name = cut(event.name, nameCharactersMax);
  event.timeMs ||= observedMs;
  if (text.to - text.from > partBytesMax) event.broken ??= tooLarge("body");
  if (event.broken !== undefined || !content) return event;
  event.body = labelText(jsonIn(fieldsWithin(all, text.from, text.to)));
  const others = places
    .map(([from, to]) => attributeIn(all, from, to))
    .filter(({ key }) => key !== "" && key !== nameKey);
  event.metadata = Object.fromEntries(others.map((each) => [attributeKey(each.key), jsonOf(each)]));
  return event;
}
