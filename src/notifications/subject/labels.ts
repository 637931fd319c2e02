import type { Db } from "../../db/connect.ts";
import { type LabelView, labelView } from "../../events/labels.ts";
import { readSubjects, type SubjectState } from "./read-subjects.ts";
import { keyText, type SubjectRef } from "./subject.ts";

/** A subject that a rule matches, of which labels are asked. */
export interface Labelled {
  readonly subject: SubjectRef;
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
  const states = await readSubjects(
    db,
    tenantId,
    all.map(({ subject }) => subject),
  );
  const views = new Map<string, LabelView>();
  for (const each of all) {
    const key = labelsKey(each);
    if (views.has(key)) continue;
    const view = viewOf(each, states.get(keyText(each.subject.key)));
    if (view !== undefined) views.set(key, view);
  }
  return views;
}

/** Returns the labels of a subject in a state; undefined for an occurrence that is deleted. */
export function viewOf(
  { subject, triggerName, isSeries }: Labelled,
  { occurrence, entity }: Partial<SubjectState> = {},
): LabelView | undefined {
  const { eventId, metricName = "", metricLabels: labels } = subject;
  const dimensions = (entity?.dimensions ?? {}) as Readonly<Record<string, string>>;
  if (eventId !== undefined) return occurrence && labelView({ kind: "occurrence", ...occurrence, dimensions });
  if (isSeries) return labelView({ kind: "series", triggerName, metricName, dimensions, labels });
  return labelView({ kind: "stale", triggerName, dimensions });
}

/** Names the labels of a subject, among those that were read. */
export const labelsKey = ({ subject, triggerName }: Pick<Labelled, "subject" | "triggerName">) =>
  subject.eventId === undefined ? `${keyText(subject.key)}${triggerName}` : keyText(subject.key);
