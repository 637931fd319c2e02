import type { Fragment } from "postgres";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { EventIdentity, EventTexts } from "./fields.ts";
import type { Occurrence } from "./lifecycle.ts";

/** Labels by name; none is empty. A name may be any text, `__proto__` included: look one up by `labelOf`. */
export type LabelView = Readonly<Record<string, string>>;

type Dimensions = Readonly<Record<string, string>>;

/** Anything that a rule can match. */
export type Labelled =
  | {
      readonly kind: "occurrence";
      readonly event: EventTexts;
      readonly occurrence: Pick<Occurrence, "type" | "severity" | "metadata">;
      readonly dimensions: Dimensions;
    }
  | {
      readonly kind: "series";
      readonly triggerName: string;
      readonly metricName: string;
      readonly dimensions: Dimensions;
      /** Labels of the series; undefined: it has none. */
      readonly labels: Dimensions | undefined;
    }
  | { readonly kind: "stale"; readonly triggerName: string; readonly dimensions: Dimensions };

/** Names by the number of the API's enum. */
export const severityNames = ["default", "debug", "info", "warning", "error", "critical"] as const;

/** The labels of anything that a rule can match. Where names collide the first one counts; an empty text is no label. */
export function labelView(of: Labelled): LabelView {
  const { dimensions } = of;
  switch (of.kind) {
    case "occurrence": {
      const { event, occurrence } = of;
      const { type, severity, metadata } = occurrence;
      if (isAlert(event, occurrence)) return event.alertLabels ?? alertOfMetadata(metadata).labels;
      const own = { alertname: event.name, severity: severityNames[severity] ?? "default", type };
      return firstOf(own, dimensions, textsIn(metadata));
    }
    case "series":
      return firstOf({ alertname: of.triggerName, __name__: of.metricName }, dimensions, of.labels ?? {});
    case "stale":
      return firstOf({ alertname: of.triggerName }, dimensions);
  }
}

/** A label's value; the empty text where there is none. */
export function labelOf(labels: LabelView, name: string): string {
  return Object.hasOwn(labels, name) ? (labels[name] as string) : "";
}

function firstOf(...maps: readonly Dimensions[]): LabelView {
  const view = new Map<string, string>();
  for (const map of maps)
    for (const name of Object.keys(map)) {
      const value = map[name] as string;
      if (value !== "" && !view.has(name)) view.set(name, value);
    }
  return Object.fromEntries(view);
}

/** The texts, numbers and booleans of metadata, as texts. */
function textsIn(metadata: Occurrence["metadata"]): Dimensions {
  const texts: [string, string][] = [];
  for (const [name, value] of Object.entries(metadata)) {
    if (typeof value === "string") texts.push([name, value]);
    else if (typeof value === "number" || typeof value === "boolean") texts.push([name, JSON.stringify(value)]);
  }
  return Object.fromEntries(texts);
}

/** The type of the events that alerts become. */
export const alertType = "alert";

/** The form of an alert's key: SHA-256, hex, of its labels. */
const alertKey = "^[0-9a-f]{64}$";
const hasAlertKey = new RegExp(alertKey);

/** Tells whether an occurrence came as an alert. */
export function isAlert({ dedupKey = "", alertLabels }: EventTexts, { type }: Pick<Occurrence, "type">): boolean {
  return alertLabels !== undefined || (type === alertType && hasAlertKey.test(dedupKey));
}

/** Tells, of an event whose occurrence has the type of alerts, that it did not come as one: the contrary of `isAlert`. */
export const notAnAlert = (db: Db): Fragment => db`alert_labels is null and coalesce(dedup_key, '') !~ ${alertKey}`;

/** Returns the fingerprint that Alertmanager's API shows: of an alert from its key, of other occurrences from their event's id. */
export function fingerprintOf(event: EventIdentity, cameAsAlert: boolean): string {
  return (cameAsAlert ? (event.dedupKey ?? "") : event.id.toString("hex")).slice(0, 16);
}

/** Stands before the name of a label that would mean something else among an event's metadata. */
export const labelPrefix = "label.";
/** Stands before the name of an annotation. */
export const annotationPrefix = "annotation.";
/** The key of an alert's `generatorURL`. */
export const generatorKey = "generatorURL";
/** The key under which the service says why it closed an occurrence. */
export const reasonKey = "reason";

/** The labels, annotations and source that an event's metadata hold of the alert that it was; values may be cut. */
export function alertOfMetadata(metadata: Occurrence["metadata"]) {
  const labels: [string, string][] = [];
  const annotations: [string, string][] = [];
  let generatorURL = "";
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value !== "string" || key === reasonKey) continue;
    if (key === generatorKey) generatorURL = value;
    else if (key.startsWith(annotationPrefix)) annotations.push([key.slice(annotationPrefix.length), value]);
    else labels.push([key.startsWith(labelPrefix) ? key.slice(labelPrefix.length) : key, value]);
  }
  return { labels: Object.fromEntries(labels), annotations: Object.fromEntries(annotations), generatorURL };
}

/** Returns what Alertmanager's API shows of an occurrence beside its labels: of an alert what it came with, else its texts. */
export function annotationsOf(
  event: EventTexts,
  occurrence: Pick<Occurrence, "type" | "summary" | "body" | "metadata">,
) {
  if (isAlert(event, occurrence)) {
    const { annotations, generatorURL } = alertOfMetadata(occurrence.metadata);
    return { annotations, generatorURL };
  }
  const { summary, body } = occurrence;
  const annotations = { ...(summary !== "" && { summary }), ...(body !== "" && { description: body }) };
  return { annotations: annotations as Record<string, string>, generatorURL: "" };
}

/** Returns what maps have in common. */
export function common(maps: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  const [first = {}, ...others] = maps;
  const shared = new Map(Object.entries(first));
  for (const map of others) keepShared(shared, map);
  return Object.fromEntries(shared);
}

/** Leaves of what maps have in common what a further one has, too. */
export function keepShared(shared: Map<string, string>, map: Readonly<Record<string, string>>): void {
  for (const [name, value] of shared) if (!Object.hasOwn(map, name) || map[name] !== value) shared.delete(name);
}

/**
 * One label of an occurrence as `labelView` makes it, over o, its event e and its entity n: text, null where there is none.
 * A statement reads it where rows are too many to be read one by one; test/events/group.test.ts holds the two against each other.
 */
export function labelSql(db: Db, name: string): Fragment {
  const plain = db`case jsonb_typeof(o.metadata -> ${name}::text)
      when 'string' then nullif(o.metadata ->> ${name}::text, '') when 'boolean' then o.metadata ->> ${name}::text
      when 'number' then ${shortest(db, name)}
    end`;
  const own = db`coalesce(${ownSql(db, name)}, nullif(n.dimensions ->> ${name}::text, ''), ${plain})`;
  return db`(case
    when e.alert_labels is not null then nullif(e.alert_labels ->> ${name}::text, '')
    when o.type = ${alertType}::text and e.dedup_key ~ ${alertKey}::text then nullif(${sentSql(db, name)}, '')
    else ${own} end)`;
}

/** What an occurrence says of itself under this name. */
function ownSql(db: Db, name: string): Fragment {
  switch (name) {
    case "alertname":
      return db`nullif(e.name, '')`;
    case "severity":
      return db`(${textArray(severityNames)}::text[])[o.severity + 1]`;
    case "type":
      return db`nullif(o.type, '')`;
    default:
      return db`null::text`;
  }
}

/** A label of an alert that its metadata hold. */
function sentSql(db: Db, name: string): Fragment {
  const key = `${labelPrefix}${name}`;
  const marked = db`case jsonb_typeof(o.metadata -> ${key}::text) when 'string' then o.metadata ->> ${key}::text end`;
  const hasOther = [labelPrefix, annotationPrefix].some((prefix) => name.startsWith(prefix));
  if (hasOther || name === reasonKey || name === generatorKey) return marked;
  const bare = db`case jsonb_typeof(o.metadata -> ${name}::text) when 'string' then o.metadata ->> ${name}::text end`;
  return db`coalesce(${marked}, ${bare})`;
}

/** A number in JSON's shortest form. PostgreSQL keeps its digits, and writes them without an exponent where JSON has one. */
function shortest(db: Db, name: string): Fragment {
  return db`(
      select case
          when whole ~ '^.{22}' and fraction = '' then sign || left(whole, 1) || rtrim('.' || rtrim(substr(whole, 2), '0'), '.')
            || 'e+' || length(whole) - 1
          when whole = '0' and fraction ~ '^0{6}' then sign || left(digits, 1) || rtrim('.' || substr(digits, 2), '.')
            || 'e-' || length(fraction) - length(digits) + 1
          else value
        end
      from (select o.metadata ->> ${name}::text as value) as read
        cross join lateral (select case when value like '-%' then '-' else '' end as sign, ltrim(split_part(value, '.', 1), '-') as whole,
          split_part(value, '.', 2) as fraction) as parts
        cross join lateral (select ltrim(fraction, '0') as digits) as significant
    )`;
}
