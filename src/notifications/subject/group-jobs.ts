import type { NewJob } from "../../jobs/queue.ts";

/** The jobs that look at the groups of a rule: at matches that begin or end, and at each flush. */
export const groupsKind = "notifications.groups";

/** The payload of such a job. */
export interface GroupPayload {
  ruleId: string;
  /** The keys of subjects that began or ended, base64url; none: a flush is due. */
  keys: string[];
  /** Jobs made until then have to be done before a flush that is due, ms: all that was stored before it is matched. */
  untilMs?: number;
}

const portion = 500;

/** Returns the jobs that look at matches which began or ended. */
export function groupJobs(
  matches: readonly { readonly ruleId: string; readonly subject: { readonly key: Buffer } }[],
): { kind: string; jobs: NewJob[] } {
  const jobs: NewJob[] = [];
  for (const [ruleId, all] of Map.groupBy(matches, (match) => match.ruleId)) {
    const keys = [...new Set(all.map(({ subject }) => subject.key.toString("base64url")))];
    for (let from = 0; from < keys.length; from += portion) {
      const payload: GroupPayload = { ruleId, keys: keys.slice(from, from + portion) };
      jobs.push({ payload, size: payload.keys.length });
    }
  }
  return { kind: groupsKind, jobs };
}

/** Returns the job that flushes a rule's groups at a time. A later one of the same time makes an earlier one void. */
export const flushJob = (ruleId: string, dueMs: number): NewJob => {
  const payload: GroupPayload = { ruleId, keys: [] };
  return { id: `${ruleId}:${dueMs}`, payload, dueMs };
};
