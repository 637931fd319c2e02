import type { Db } from "../../db/connect.ts";
import { readDimensions } from "../../entities/read.ts";
import type { EventIdentity } from "../../events/fields.ts";
import { type LabelView, labelView } from "../../events/labels.ts";
import type { Occurrence } from "../../events/lifecycle.ts";
import { findOccurrences, type OccurrenceKey, keyText as occurrenceText } from "../../events/occurrences.ts";
import { keyText, type Subject } from "./subject.ts";

/** A subject that a rule matches, of which labels are asked. */
export interface Labelled {
  readonly subject: Subject;
  /** The trigger that is named; empty for a rule without triggers. */
  readonly triggerName: string;
  /** Whether it is a series; else, if it is no occurrence, it is data that stay away. */
  readonly isSeries: boolean;
}

/**
 * Reads the labels of subjects as they are now, each by the key of its subject, and for what is no occurrence by its trigger
 * too (`labelsKey`). What is deleted has none.
 */
export async function readLabels(db: Db, tenantId: string, all: readonly Labelled[]): Promise<Map<string, LabelView>> {
  const keys = new Map<string, OccurrenceKey>();
  const entityIds = new Map<string, Buffer>();
  for (const { subject } of all) {
    const { eventId, number, entityId } = subject;
    if (eventId !== undefined && number !== undefined)
      keys.set(occurrenceText({ eventId, number }), { eventId, number });
    entityIds.set(keyText(entityId), entityId);
  }
  const found =
    keys.size === 0
      ? (new Map() as Awaited<ReturnType<typeof findOccurrences>>)
      : await findOccurrences(db, tenantId, [...keys.values()]);
  const dimensions = await readDimensions(db, tenantId, [...entityIds.values()]);
  const views = new Map<string, LabelView>();
  for (const each of all) {
    const { subject } = each;
    const own = dimensions.get(keyText(subject.entityId)) ?? {};
    const key = labelsKey(each);
    if (views.has(key)) continue;
    const { eventId, number } = subject;
    const isOccurrence = eventId !== undefined && number !== undefined;
    const view = viewOf(each, own, isOccurrence ? found.get(occurrenceText({ eventId, number })) : undefined);
    if (view !== undefined) views.set(key, view);
  }
  return views;
}

/** Returns the labels of a subject; undefined for an occurrence that is deleted. */
export function viewOf(
  { subject, triggerName, isSeries }: Labelled,
  dimensions: Readonly<Record<string, string>>,
  occurrence: { event: EventIdentity; occurrence: Occurrence } | undefined,
): LabelView | undefined {
  const { eventId, metricName = "", metricLabels: labels } = subject;
  if (eventId !== undefined) return occurrence && labelView({ kind: "occurrence", ...occurrence, dimensions });
  if (isSeries) return labelView({ kind: "series", triggerName, metricName, dimensions, labels });
  return labelView({ kind: "stale", triggerName, dimensions });
}

/** Names the labels of a subject, among those that were read. */
export const labelsKey = ({ subject, triggerName }: Pick<Labelled, "subject" | "triggerName">) =>
  subject.eventId === undefined ? `${keyText(subject.key)}${triggerName}` : keyText(subject.key);
