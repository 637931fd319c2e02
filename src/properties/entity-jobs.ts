import type { Db } from "../db/connect.ts";
import { splitIds } from "../entities/batched-writes.ts";
import { ID_BYTES } from "../entities/identity.ts";
import { idsInPart } from "../entities/unlocked-names.ts";
import type { Again, Job, NewJob } from "../jobs/queue.ts";

/** Entities a job; a run takes one or three: few enough that their locks are held for a short time. */
export const portion = 100;
/** Entities that one run takes of a part of the tenant's. */
const partMax = 3 * portion;

/** What a job is over: these entities, or all whose ids begin with this byte, from one of them on. */
type Payload = { ids: string } | { part: number; from?: string };

/** Jobs over these entities. */
export function jobsOf(ids: Buffer, dueMs?: number): NewJob[] {
  const found: NewJob[] = [];
  for (let at = 0; at < ids.byteLength; at += portion * ID_BYTES) {
    const some = ids.subarray(at, at + portion * ID_BYTES);
    const size = some.byteLength / ID_BYTES;
    found.push({ payload: { ids: some.toString("base64") }, size, ...(dueMs !== undefined && { dueMs }) });
  }
  return found;
}

/**
 * Jobs over the parts of the tenant's entities that these lie in. There are 256 parts, each has one job, and one that is enqueued
 * replaces it: however much changes, they become no more.
 */
export function partJobsOf(ids: readonly Buffer[], dueMs: number): NewJob[] {
  const parts = [...new Set(ids.map((id) => id[0] as number))].sort((a, b) => a - b);
  return parts.map((part) => ({ id: `part ${part}`, payload: { part } satisfies Payload, size: partMax, dueMs }));
}

/** The entities that jobs are over, each once, and what is left of the jobs where some of them were not reached. */
export interface JobEntities {
  ids: Buffer[];
  left(unreached: readonly Buffer[], nowMs: number): Again[];
}

/** Finds the entities of jobs: those that they list, and of a part of the tenant's the next ones. */
export async function entitiesOf(tx: Db, tenantId: string, jobs: readonly Job[]): Promise<JobEntities> {
  const listed: Job[] = [];
  const parts: { job: Job; part: number; ids: Buffer[] }[] = [];
  const distinct = new Map<string, Buffer>();
  for (const job of jobs) {
    const payload = job.payload as Payload;
    let ids: Buffer[];
    if ("ids" in payload) {
      ids = splitIds(Buffer.from(payload.ids, "base64"));
      listed.push(job);
    } else {
      const from = payload.from === undefined ? undefined : Buffer.from(payload.from, "base64");
      ids = await idsInPart(tx, tenantId, payload.part, { from, max: partMax });
      parts.push({ job, part: payload.part, ids });
    }
    for (const id of ids) distinct.set(id.toString("latin1"), id);
  }
  return {
    ids: [...distinct.values()],
    left(unreached, nowMs) {
      const ofParts = parts.flatMap(({ job, part, ids }) => {
        const missed = unreached.filter((id) => id[0] === part).sort(Buffer.compare);
        // The first that was not reached, or else the last one, after which there may be more.
        const from = missed[0] ?? (ids.length === partMax ? ids.at(-1) : undefined);
        if (from === undefined) return [];
        return [{ id: job.id, payload: { part, from: from.toString("base64") }, dueMs: nowMs }];
      });
      const taken = new Set(parts.map(({ part }) => part));
      const rest = jobsOf(Buffer.concat(unreached.filter((id) => !taken.has(id[0] as number))));
      const ofListed = rest.map(({ payload }, i) => ({ id: (listed[i] as Job).id, payload, dueMs: nowMs }));
      return [...ofParts, ...ofListed];
    },
  };
}
