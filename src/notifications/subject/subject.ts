import { hash } from "node:crypto";
import { type Labels, labelsKey } from "../../metrics/labels.ts";

/** What a rule matches and notifications are about: an occurrence, or what replaces it for other sources. */
export interface Subject {
  /** Names it within its tenant, 24 bytes: the column `subject`. */
  readonly key: Buffer;
  readonly entityId: Buffer;
  /** Of an occurrence. */
  readonly eventId?: Buffer;
  readonly number?: number;
  /** Of a series, and of data that stay away. */
  readonly metricName?: string;
  /** Of a series that has some. */
  readonly metricLabels?: Labels;
}

const SUBJECT_BYTES = 24;

/** An occurrence: the id of its event, and its number. */
export function occurrenceSubject(event: { id: Buffer; entityId: Buffer }, number: number): Subject {
  const key = Buffer.allocUnsafe(SUBJECT_BYTES);
  event.id.copy(key);
  key.writeUInt32BE(number, event.id.length);
  return { key, entityId: event.entityId, eventId: event.id, number };
}

/** A key made of texts and ids. */
function digest(...parts: readonly (string | Buffer)[]): Buffer {
  const texts = parts.map((part) => (typeof part === "string" ? part : part.toString("base64")));
  return hash("sha256", JSON.stringify(texts), "buffer").subarray(0, SUBJECT_BYTES);
}

/** A series: a metric of an entity, with its labels. */
export function seriesSubject(entityId: Buffer, metricName: string, labels?: Labels): Subject {
  if (labels === undefined) return { key: digest("series", entityId, metricName), entityId, metricName };
  const key = digest("series", entityId, metricName, labelsKey(labels));
  return { key, entityId, metricName, metricLabels: labels };
}

/** An entity whose data a trigger waits for. */
export function staleSubject(triggerName: string, entityId: Buffer, metricName: string): Subject {
  return { key: digest("stale", triggerName, entityId), entityId, ...(metricName !== "" && { metricName }) };
}

/** What a summary and its end are about, by the id of the delivery that was sent as the summary. */
export function summarySubject(summaryId: string): Buffer {
  const key = Buffer.alloc(SUBJECT_BYTES);
  key.write(summaryId.replaceAll("-", ""), "hex");
  return key;
}

/** A group of a rule, by the labels that its members share; the one of those beyond the bound has none. */
export function groupSubject(ruleId: string, labels: Labels | undefined): Buffer {
  return digest("group", ruleId, labels === undefined ? "" : JSON.stringify(Object.entries(labels).sort()));
}

/** A run of a maintenance window, by when it began. */
export function windowSubject(windowId: string, runMs: number): Buffer {
  return digest("window", windowId, String(runMs));
}

export const keyText = (key: Buffer) => key.toString("latin1");
