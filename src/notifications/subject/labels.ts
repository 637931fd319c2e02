import type { Db } from "../../db/connect.ts";
import { type LabelView, labelView } from "../../events/labels.ts";
import { readSubjects, type SubjectState } from "./read-subjects.ts";
import { keyText, type SubjectRef } from "./subject.ts";

/** A subject that a rule matches, of which labels are asked. */
export interface LabelledSubject {
  readonly subject: SubjectRef;
  /** The first one is named; none for a rule without triggers. */
  readonly triggerNames: readonly string[];
  /** Present for a series; else, if it is no occurrence, it is data that stay away. */
  readonly value?: number | null | undefined;
}

/** A subject in its current state. */
export interface LabelledState extends Pick<SubjectState, "entity"> {
  readonly labels: LabelView;
}

/**
 * Reads subjects with their labels as they are now, each by the key of its subject, and for what is no occurrence by its trigger
 * too (`subjectLabelsKey`). What is deleted is left out.
 */
export async function readLabels(
  db: Db,
  tenantId: string,
  all: readonly LabelledSubject[],
): Promise<Map<string, LabelledState>> {
  const states = await readSubjects(
    db,
    tenantId,
    all.map(({ subject }) => subject),
  );
  const found = new Map<string, LabelledState>();
  for (const each of all) {
    const key = subjectLabelsKey(each);
    if (found.has(key)) continue;
    const state = states.get(keyText(each.subject.key));
    const labels = viewOf(each, state);
    if (labels !== undefined) found.set(key, { labels, entity: state?.entity });
  }
  return found;
}

/** Returns the labels of a subject in a state; undefined for an occurrence that is deleted. */
export function viewOf(
  { subject, triggerNames: [triggerName = ""], value }: LabelledSubject,
  { occurrence, entity }: Partial<SubjectState> = {},
): LabelView | undefined {
  const { eventId, metricName = "", metricLabels: labels } = subject;
  const dimensions = (entity?.dimensions ?? {}) as Readonly<Record<string, string>>;
  if (eventId !== undefined) return occurrence && labelView({ kind: "occurrence", ...occurrence, dimensions });
  if (value != null) return labelView({ kind: "series", triggerName, metricName, dimensions, labels });
  return labelView({ kind: "stale", triggerName, dimensions });
}

/** Names the labels of a subject, among those that were read. */
export const subjectLabelsKey = ({ subject, triggerNames: [triggerName = ""] }: LabelledSubject) =>
  subject.eventId === undefined ? `${keyText(subject.key)}${triggerName}` : keyText(subject.key);
