import { createHash } from "node:crypto";
import { compareCodePoints } from "../../clause/code-point-order.ts";
import type { EventItem } from "../../events/ingest.ts";
import { alertType, annotationPrefix, generatorKey, labelPrefix } from "../../events/labels.ts";
import { entityOfLabels, hasMeaning } from "../foreign-keys.ts";
import { cut, cutBytes, lines, oneLine } from "../foreign-texts.ts";
import type { Alert } from "./alerts.ts";

const severities: Readonly<Record<string, number>> = {
  critical: 5,
  page: 5,
  fatal: 5,
  emergency: 5,
  error: 4,
  high: 4,
  major: 4,
  warning: 3,
  warn: 3,
  medium: 3,
  minor: 3,
  info: 2,
  informational: 2,
  notice: 2,
  low: 2,
  debug: 1,
  none: 0,
  default: 0,
};
const warning = 3;

/** Returns the severity that a label `severity` names, by the numbers of the API's enum; WARNING for an unknown word, or none at all. */
export function severityOf(text: string | undefined): number {
  const word = text?.trim().toLowerCase() ?? "";
  return Object.hasOwn(severities, word) ? (severities[word] as number) : warning;
}

/** The identity of an alert: SHA-256, hex, of its labels without empty ones, by name, each text after its length. */
export function dedupKeyOf(labels: Alert["labels"]): string {
  const sorted = labels.filter(([, value]) => value !== "").sort(([a], [b]) => compareCodePoints(a, b));
  const digest = createHash("sha256");
  for (const text of sorted.flat()) {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    digest.update(length).update(bytes);
  }
  return digest.digest("hex");
}

/** A label's key among the metadata of its event. Different labels have different keys. */
function labelKey(name: string): string {
  const taken =
    hasMeaning(name) || name === generatorKey || name.startsWith(labelPrefix) || name.startsWith(annotationPrefix);
  return taken ? labelPrefix + name : name;
}

const metadataBytesMax = 60_000; // of 64 KiB; the service notes why it closed an occurrence there, too
const valueBytesMax = 32_768;
/** Values are cut no shorter. */
const valueBytesMin = 64;
const entriesMax = 2000;
const keyBytesMax = 1024;

const entryBytes = (...texts: [key: string, value: string]) => Buffer.byteLength(JSON.stringify(texts));

/** Labels of at most so many bytes are never cut for the sake of annotations. */
const wholeLabelsBytesMax = 16_384;

const metadataKey = (key: string) => cutBytes(oneLine(key), keyBytesMax);

/** Tells whether metadata hold labels whole. Depends on nothing but the labels, which are the same in all reports of an event. */
function fitWhole(entries: readonly (readonly [key: string, value: string])[]): boolean {
  const bytes = entries.reduce((sum, entry) => sum + entryBytes(...entry), 0);
  return (
    bytes <= wholeLabelsBytesMax && entries.every(([key, value]) => metadataKey(key) === key && lines(value) === value)
  );
}

/**
 * The metadata of an event, and the labels of its alert where the metadata do not hold them whole. Where metadata are too large
 * the longest values are cut first, and then the last ones are left out.
 */
function metadataOf({ labels, annotations, generatorURL }: Alert): Pick<EventItem, "alertLabels"> & {
  metadata: Record<string, string>;
} {
  const present = labels.filter(([, value]) => value !== "");
  const ofLabels = present.map(([name, value]) => [labelKey(name), value] as const);
  const whole = fitWhole(ofLabels);
  const all = [
    ...ofLabels,
    ...(generatorURL === "" ? [] : [[generatorKey, generatorURL] as const]),
    ...annotations.map(([name, value]) => [annotationPrefix + name, value] as const),
  ].slice(0, entriesMax);
  const texts = all.map(([key, value]): [string, string] => [metadataKey(key), lines(value)]);
  const sizes = texts.map(([key, value]) => entryBytes(key, value));
  const valueSizes = texts.map(([, value]) => Buffer.byteLength(value));
  const from = whole ? ofLabels.length : 0;
  let bytes = sizes.reduce((sum, size) => sum + size, 0);
  for (let most = valueBytesMax; most >= valueBytesMin; most /= 2) {
    for (let i = from; i < texts.length; i++) {
      if ((valueSizes[i] as number) <= most) continue;
      const [key, text] = texts[i] as [string, string];
      const value = cutBytes(text, most);
      texts[i] = [key, value];
      valueSizes[i] = Buffer.byteLength(value);
      bytes -= sizes[i] as number;
      sizes[i] = entryBytes(key, value);
      bytes += sizes[i] as number;
    }
    if (bytes <= metadataBytesMax) break;
  }
  while (bytes > metadataBytesMax) {
    bytes -= sizes[texts.length - 1] as number;
    texts.pop();
  }
  return {
    metadata: Object.fromEntries(texts),
    ...(!whole && { alertLabels: Object.fromEntries(present.map(storable)) }),
  };
}

/** A label as PostgreSQL and expressions can take it: without NUL, and cut where its value is too long to be compared. */
const storable = ([name, value]: readonly [name: string, value: string]) =>
  [name.replaceAll("\0", " "), cutBytes(value.replaceAll("\0", " "), valueBytesMax)] as const;

const nameCharactersMax = 255;
const summaryCharactersMax = 128;
const bodyBytesMax = 65_536;
const open = 1;
const closed = 3;

/** When an alert fires or has ended, and until when it is believed. */
export interface AlertTimes {
  firing: boolean;
  timeMs: number;
  /** Absent: until its end is reported. */
  expiresAtMs?: number;
}

/** The event that an alert is. What is too long is cut, never refused. */
export function eventOfAlert(alert: Alert, times: AlertTimes, entityLabels: ReadonlySet<string>): EventItem {
  const label = new Map(alert.labels);
  const annotation = new Map(alert.annotations);
  const name = oneLine(label.get("alertname") || "alert");
  const summary = ["summary", "message", "title"].map((key) => annotation.get(key)).find((text) => text) ?? name;
  return {
    name: cut(name, nameCharactersMax),
    dimensions: entityOfLabels(alert.labels, entityLabels),
    dedupKey: dedupKeyOf(alert.labels),
    timeMs: BigInt(times.timeMs),
    severity: severityOf(label.get("severity")),
    status: times.firing ? open : closed,
    acknowledged: undefined,
    type: alertType,
    summary: cut(oneLine(summary), summaryCharactersMax),
    body: cutBytes(lines(annotation.get("description") ?? ""), bodyBytesMax),
    ...metadataOf(alert),
    ...(times.expiresAtMs !== undefined && { expiresAtMs: BigInt(times.expiresAtMs) }),
    // An alert that fires still is sent again and again: it keeps its occurrence open, and is no news.
    // Of a pair that sends it each names itself as the origin.
    ...(times.firing ? { onlyKeepsOpen: true, looseKeys: [generatorKey] } : { closesOpen: true }),
  };
}
