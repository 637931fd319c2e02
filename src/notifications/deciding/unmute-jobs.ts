import type { NewJob } from "../../jobs/queue.ts";

/** The jobs that look at what was kept silent, by the entities that are perhaps no longer in maintenance. */
export const unmuteKind = "notifications.released";
/** After this time a transaction that kept silent has ended, and a job sees what it has noted. */
const settledMs = 1000;

/** The payload of such a job: ids in base64, and when they left maintenance. */
export interface Released {
  entityIds: string[];
  /** Absent in jobs of 0.1.0. */
  atMs?: number;
  /** The last subject that was looked at, base64url; absent: none was. */
  after?: string;
}

/** The jobs that look at what is kept silent about these entities. */
export function unmuteJobs(entityIds: readonly Buffer[], dueMs: number): { kind: string; jobs: NewJob[] } {
  const texts = new Set(entityIds.map((id) => id.toString("base64url")));
  const payload: Released = { entityIds: [...texts], atMs: dueMs };
  return { kind: unmuteKind, jobs: [{ payload, dueMs }] };
}

/** The same of what a transaction has just begun to keep silent: a window that ends before its commit does not know of it. */
export const lookAtSilenced = (entityIds: readonly Buffer[], nowMs: number) => unmuteJobs(entityIds, nowMs + settledMs);
