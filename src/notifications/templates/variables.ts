import { type DescMessage, type JsonObject, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { type Severity, SeveritySchema, type Status, StatusSchema } from "#gen/belfry/events/v1/event_pb.ts";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { alertOfMetadata, type LabelView, labelView } from "../../events/labels.ts";
import { labelsOrder } from "../../metrics/labels.ts";
import { isRedacted } from "../../wire/redacted.ts";
import { eventData } from "../rules/sources/source.ts";
import { dataOf } from "../rules/sources.ts";
import type { Notification } from "../subject/notification.ts";
import { type Markup, visible } from "./markup.ts";
import { cutText, type Variables, Verbatim } from "./template.ts";

/** `2026-11-22T10:00:00.000Z`; empty for no time, and for what no date is made of: a preview takes any time. */
export const isoTime = (ms = Number.NaN) => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : "");

/** `CRITICAL`, `DEFAULT`. */
export const severityName = (severity: Severity) => SeveritySchema.value[severity]?.localName ?? "";
/** `OPEN`, `DEFAULT`. */
export const statusName = (status: Status) => StatusSchema.value[status]?.localName ?? "";

/** `disk.used{mountpoint=/var}`: a metric with its labels, or the beginning of them. */
export const seriesName = ({ name, labels }: NonNullable<Notification["metric"]>) =>
  labels === undefined ? name : `${name}{${labelsOrder(labels).begin}}`;

/** How long a text is once it is written as a product has it, as that product counts. */
export type Measure = (text: string) => number;

/** No product counts more for a text that it is sent without escapes. */
export const utf8Bytes: Measure = (text) => Buffer.byteLength(text);

/** How many notifications a summary stands for, and the names that are known, as many as fit. */
export function summaryText(
  { count, names }: NonNullable<Notification["summary"]>,
  measure = utf8Bytes,
  max = linesMax,
): string {
  const named: string[] = [];
  let size = 0;
  for (const name of names) {
    size += measure(visible(name)) + 2;
    if (size > max) break;
    named.push(name);
  }
  const more = count > named.length ? ` and ${count - named.length} more` : "";
  return visible(`${count} notifications: ${named.join(", ")}${more}`);
}

type Group = NonNullable<Notification["group"]>;

/** Tells whether a notification is about several members of a group: those that it lists, or the end of one beside others that fire. */
export const hasMembers = ({ group }: { readonly group?: Omit<Group, "key"> }) =>
  group !== undefined && (group.firing + group.resolved > 1 || (group.firing === 0 && (group.silenced ?? 0) > 0));

/** Tells whether all that a notification lists has ended; without `clear` silenced members of its group still fire. */
export const hasEnded = ({ clear, group }: Notification) => clear || group?.firing === 0;

// Escaped five times as long at worst, still less than half of what a chat takes; in the line about silenced alerts less than a title.
const sharedCharsMax = 400;
const sharedBesideSilencedMax = 60;

/** How many members of a group fire, and have ended, and what they share. */
export function groupText(group: Group): string {
  const { counts, shared, still } = groupParts(group);
  return `${counts}${shared === "" ? "" : `: ${shared}`}${still}`;
}

/** What is said of a group: its counts, what its members share, and which silenced ones still fire where no other does. */
export function groupParts({ firing, resolved, silenced = 0, labels, beyond }: Group) {
  const counts = [...(firing > 0 ? [`${firing} firing`] : []), ...(resolved > 0 ? [`${resolved} resolved`] : [])].join(
    ", ",
  );
  const isSilenced = firing === 0 && silenced > 0;
  const pairs = beyond ? ["further groups"] : Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const shared = cutText(visible(pairs.join(", ")), isSilenced ? sharedBesideSilencedMax : sharedCharsMax);
  const still = silenced === 1 ? "; 1 silenced alert still fires" : `; ${silenced} silenced alerts still fire`;
  return { counts, shared, still: isSilenced ? still : "" };
}

/** Less than any chat takes, however it counts. */
export const linesMax = 2500;

/** Names the members of a group, a line each, as many as fit, and says how many more there are. */
export const memberLines = (group: Group, max: number, measure = utf8Bytes): string[] =>
  linesOf(
    group,
    ({ resolved, headline: text, severity, entity }) =>
      `${resolved ? "RESOLVED" : severityName(severity as Severity)} ${text}${entity.name === "" ? "" : ` (${entity.name})`}`,
    max,
    measure,
  );

/** Writes a line for each member of a group, as many as fit, and says how many more there are. */
export function linesOf(
  { firing, resolved, alerts }: Group,
  lineOf: (alert: Group["alerts"][number]) => string,
  max: number,
  measure: Measure,
): string[] {
  const lines: string[] = [];
  let size = 0;
  for (const alert of alerts) {
    const line = visible(lineOf(alert).replace(/\s+/g, " "));
    size += measure(line) + 1;
    if (size > max) break;
    lines.push(line);
  }
  const more = firing + resolved - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

/** One line that says what a notification is about; of a summary, a line that names its members. */
export function headline(notification: Notification, measure?: Measure): string {
  const { summary, group, event, metric, entity, trigger } = notification;
  if (summary !== undefined) return summaryText(summary, measure);
  if (group !== undefined && hasMembers(notification)) return groupText(group);
  if (event !== undefined) return visible(event.summary || event.name);
  if (metric?.value !== undefined) return visible(`${seriesName(metric)} is ${metric.value} on ${entity.name}`);
  return visible(`no data${missed(metric?.name, trigger.type)} from ${entity.name}`);
}

/** What data stay away, after "no data". */
export function missed(metricName: string | undefined, type: TriggerType): string {
  const names = [metricName, ...dataOf(type).filter((name) => name.startsWith(eventData("")))].filter(Boolean);
  return names.length === 0 ? "" : ` of ${names.join(" and ")}`;
}

/** Returns the occurrence that a group's message is about alone, by its id; undefined for several members, or one that is no occurrence. */
export const onlyOccurrence = ({ firing, resolved, alerts: [only] }: NonNullable<Notification["group"]>) =>
  firing + resolved === 1 && only?.event !== undefined ? only.subjectId : undefined;

/**
 * Returns the console's page, at the public address of this service, of the notification's occurrence, or of the deliveries that a
 * summary stands for, or of a group by its key; empty for a series or data that stay away, alone.
 */
export function eventUrl(notification: Notification, publicUrl: string): string {
  const { summary, group, event, subjectId } = notification;
  const console = `${publicUrl}/console/#`;
  if (summary !== undefined) return `${console}/deliveries?summary=${summary.id}`;
  const occurrence = group === undefined ? event && subjectId : onlyOccurrence(group);
  if (occurrence !== undefined) return `${console}/occurrences/${encodeURIComponent(occurrence)}`;
  return group === undefined ? "" : `${console}/events?groupKey=${encodeURIComponent(group.key)}`;
}

/** The words of a link to `eventUrl`. */
export function eventLinkText({ summary, group }: Notification): string {
  if (summary !== undefined) return "Show notifications";
  return group === undefined || onlyOccurrence(group) !== undefined ? "Show event" : "Show alerts";
}

/** The labels of what a notification reports, by which matchers ask for it. */
export function notifiedLabels({ group, event, entity, metric, trigger }: Notification): LabelView {
  if (group !== undefined) return group.commonLabels;
  const { dimensions } = entity;
  if (event !== undefined) return labelView({ kind: "occurrence", event, occurrence: event, dimensions });
  if (metric?.value === undefined) return labelView({ kind: "stale", triggerName: trigger.name, dimensions });
  const { name: metricName, labels } = metric;
  return labelView({ kind: "series", triggerName: trigger.name, metricName, dimensions, labels });
}

/** The metadata of an event; lists and maps as JSON. */
const fieldsOf = (metadata: JsonObject): Variables =>
  Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [
      key,
      typeof value === "object" && value !== null ? JSON.stringify(value) : value,
    ]),
  );

/** Every text, number and flag of a message and of those in it, but for secrets. */
function properties(desc: DescMessage, message: Message): Variables {
  const view = reflect(desc, message);
  const shown = desc.fields.flatMap((field): [string, Variables[string]][] => {
    if (field.fieldKind === "message") {
      return view.isSet(field) ? [[field.jsonName, properties(field.message, view.get(field).message)]] : [];
    }
    if (isRedacted(field) || field.fieldKind === "list" || field.fieldKind === "map") return [];
    if (field.fieldKind === "enum") return [[field.jsonName, field.enum.value[view.get(field)]?.name]];
    return field.scalar === ScalarType.BYTES ? [] : [[field.jsonName, view.get(field) as string | number | boolean]];
  });
  return Object.fromEntries(shown);
}

/** A destination's kind, as templates name it, and its message. */
export interface Described {
  readonly name: string;
  readonly desc: DescMessage;
  readonly message: Message;
}

/** What the templates of a notification may name (docs/templates.md), for texts in this markup. */
export function variablesOf(
  notification: Notification,
  destination: Described | undefined,
  markup: Markup,
  publicUrl: string,
): Variables {
  const { id, clear, timeMs, tenant, rule, trigger, event, entity, metric } = notification;
  const alert = event && alertOfMetadata(event.metadata);
  const url = eventUrl(notification, publicUrl);
  return {
    clear,
    ended: hasEnded(notification),
    headline: headline(notification, markup.size),
    id,
    url,
    link: new Verbatim(url === "" ? "" : markup.link(url, headline(notification))),
    tenant: tenant.name,
    tenant_url: publicUrl,
    timestamp: isoTime(timeMs),
    timestamp_ms: timeMs,
    event: event && {
      id: event.id,
      name: event.name,
      type: event.type,
      headline: headline(notification, markup.size),
      summary: event.summary,
      body: event.body,
      severity: severityName(event.severity),
      status: statusName(event.status),
      acknowledged: event.acknowledged,
      timestamp: isoTime(event.timeMs),
      start_time: isoTime(event.startMs),
      dedup_key: event.dedupKey,
      expires_at: event.expiresMs === undefined ? undefined : isoTime(event.expiresMs),
      count: Number(event.count),
      generator_url: alert?.generatorURL,
      labels: notifiedLabels(notification),
      annotations: alert?.annotations,
      fields: fieldsOf(event.metadata),
    },
    entity: {
      id: entity.id,
      name: entity.name,
      dimensions: entity.dimensions,
      url: `${publicUrl}/console/#/entities/${encodeURIComponent(entity.id)}`,
    },
    metric: metric && {
      name: metric.name,
      labels: metric.labels,
      value: metric.value,
      timestamp: isoTime(metric.timeMs),
    },
    trigger: { name: trigger.name, threshold: trigger.threshold, threshold_type: trigger.thresholdType },
    rule: { name: rule.name },
    destination: destination && { [destination.name]: properties(destination.desc, destination.message) },
  };
}
