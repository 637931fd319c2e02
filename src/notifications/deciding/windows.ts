import type { Db } from "../../db/connect.ts";
import { readEntities } from "../../entities/read.ts";
import { newRoot } from "../../events/facts.ts";
import { enqueue, type Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { windowSubject } from "../matched-subject.ts";
import type { Deciding } from "./deciding.ts";
import { hastenHeld } from "./groups/group-store.ts";
import { keyText, mutedSubjects } from "./match-store.ts";
import type { Notice } from "./passage.ts";
import { reconsider } from "./reconsider.ts";
import { unseenSinceMs } from "./rules-consumer.ts";
import { passFrom } from "./stages.ts";
import { type Released, unmuteJobs, unmuteKind } from "./unmute-jobs.ts";

/** A maintenance window whose run begins or ends. Times are ms since the epoch. */
export interface WindowNotice {
  windowId: string;
  windowName: string;
  what: "start" | "end";
  atMs: number;
  /** When the run began. */
  runMs: number;
  message: string;
  /** The names of the rules through whose destinations the message goes. */
  rules: readonly string[];
}

/** What must wait for other changes is looked at again after this time. */
const laterMs = 500;

/** What rules do when maintenance windows begin and end: each in the transaction in which it happens. */
export function windowRules(deciding: Deciding, nowMs: () => number) {
  return {
    /** Sends the message of a window through its rules' destinations; one that has gone, or is disabled, sends nothing. */
    async onRuns(tx: Db, tenantId: string, notices: readonly WindowNotice[]): Promise<void> {
      const { rules } = await deciding.memory.now(tx, tenantId);
      const now = nowMs();
      const all = notices.flatMap(({ rules: names, windowId: id, windowName, what, atMs, runMs, message }, i) => {
        const root = newRoot();
        return [...new Set(names)].flatMap((name): Notice[] => {
          const rule = rules.get(name);
          if (rule === undefined) return [];
          const told = { timeMs: atMs, root, window: { id, name: windowName, message, what, atMs } };
          const subject = { key: windowSubject(id, runMs) };
          const due = { occasion: what === "start" ? "first" : "clear", createdMs: now + i, dueMs: now } as const;
          return [{ ...due, rule, destinationNames: rule.destinationNames, triggerNames: [], subject, told }];
        });
      });
      await passFrom("enqueue", { tx, tenantId, nowMs: now, wake: deciding.wake, notices: all });
    },

    /** Leaves a job that reports what was kept silent about these entities and still stands, and has groups flushed that hold it back. */
    async onReleased(tx: Db, tenantId: string, entityIds: readonly Buffer[]): Promise<void> {
      const silent = await mutedSubjects(tx, tenantId, entityIds);
      const ids = new Map(silent.map(({ entityId }) => [keyText(entityId), entityId]));
      const now = nowMs();
      const { kind, jobs } = unmuteJobs([...ids.values()], now);
      if (ids.size > 0) await enqueue(tx, { tenantId, kind }, jobs, now);
      await hastenHeld(tx, tenantId, now);
    },

    kind: {
      name: unmuteKind,
      sizeMax: 10,
      run: (tx, tenantId, jobs, nowMs) => run(deciding, tx, tenantId, jobs, nowMs),
    } satisfies JobKind,
  };
}

async function run(deciding: Deciding, tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
  const oldestMs = await unseenSinceMs(tx, tenantId, nowMs);
  const endedMs = ({ payload }: Job) => (payload as Released).atMs ?? 0;
  const ready = jobs.filter((job) => endedMs(job) < oldestMs);
  const looked =
    ready.length === 0 || (await look(deciding, tx, tenantId, ready, Math.max(...ready.map(endedMs)), nowMs));
  const postponed = looked ? jobs.filter((job) => !ready.includes(job)) : jobs;
  return postponed.map(({ id, payload }) => ({ id, payload, dueMs: nowMs + laterMs }));
}

/** Returns whether nothing had to come first. */
async function look(
  deciding: Deciding,
  tx: Db,
  tenantId: string,
  jobs: readonly Job[],
  sinceMs: number,
  nowMs: number,
): Promise<boolean> {
  const texts = new Set(jobs.flatMap(({ payload }) => (payload as Released).entityIds));
  const ids = [...texts].map((text) => Buffer.from(text, "base64url"));
  const entities = await readEntities(tx, tenantId, ids);
  const free = entities.flatMap(({ id, window_production_state: state }) => (state === null ? [id] : []));
  const subjects = await mutedSubjects(tx, tenantId, free);
  return (
    subjects.length === 0 || (await reconsider(tx, tenantId, subjects, deciding, { nowMs, sinceMs })) !== undefined
  );
}
