import { hash } from "node:crypto";
import { occurrenceIdText } from "../../events/occurrence-id.ts";
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

/** The columns of a subject: of a window, a group or a summary only the first is not null. */
export interface SubjectColumns {
  subject: Buffer;
  entity_id: Buffer | null;
  event_id: Buffer | null;
  number: number | null;
  metric_name: string | null;
  /** Absent: it is not asked for. */
  metric_labels?: Record<string, string> | null;
}

/** Returns the subject of a row. */
export function toSubject(row: SubjectColumns & { entity_id: Buffer }): Subject;
export function toSubject(row: SubjectColumns): SubjectRef;
export function toSubject(row: SubjectColumns) {
  return {
    key: row.subject,
    ...(row.entity_id !== null && { entityId: row.entity_id }),
    ...(row.event_id !== null && { eventId: row.event_id }),
    ...(row.number !== null && { number: row.number }),
    ...(row.metric_name !== null && { metricName: row.metric_name }),
    ...(row.metric_labels != null && { metricLabels: row.metric_labels }),
  };
}

/** Names what deliveries are about: a window, a group or a summary has nothing but its key. */
export type SubjectRef = Pick<Subject, "key"> & Partial<Subject>;

/** Tells whether it is a subject that rules match. */
export const isMatched = (subject: SubjectRef): subject is Subject => subject.entityId !== undefined;

/** Returns a subject's name in the API: the id of an occurrence, or what stands for it with another source. */
export const subjectId = ({ key, eventId, number }: SubjectRef): string =>
  eventId === undefined || number === undefined ? key.toString("base64url") : occurrenceIdText(eventId, number);

const SUBJECT_BYTES = 24;

/** Refers to an occurrence without its entity: by the id of its event, and its number. */
export function occurrenceRef({ eventId, number }: { readonly eventId: Buffer; readonly number: number }) {
  const key = Buffer.allocUnsafe(SUBJECT_BYTES);
  eventId.copy(key);
  key.writeUInt32BE(number, eventId.length);
  return { key, eventId, number };
}

/** Returns an occurrence of an event as a subject. */
export const occurrenceSubject = (event: { id: Buffer; entityId: Buffer }, number: number): Subject => ({
  ...occurrenceRef({ eventId: event.id, number }),
  entityId: event.entityId,
});

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
