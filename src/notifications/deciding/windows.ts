import type { Db } from "../../db/connect.ts";
import { readEntities } from "../../entities/read.ts";
import { newRoot } from "../../events/facts.ts";
import { enqueue, type Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { mutedSubjects } from "../rules/match-store.ts";
import { inMaintenance } from "../silences/mutes.ts";
import { hastenHeld } from "../silences/release.ts";
import type { Notice } from "../subject/notice.ts";
import { keyText, windowSubject } from "../subject/subject.ts";
import type { Deciding } from "./deciding.ts";
import { reevaluate } from "./reevaluate.ts";
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
/** Silent subjects that one transaction looks at. */
const subjectsMax = 2000;

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
          const named = { ruleId: rule.id, ruleName: name };
          return [{ ...due, ...named, destinationNames: rule.destinationNames, triggerNames: [], subject, told }];
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
      sizeMax: 1,
      run: (tx, tenantId, jobs, nowMs) => run(deciding, tx, tenantId, jobs, nowMs),
    } satisfies JobKind,
  };
}

async function run(deciding: Deciding, tx: Db, tenantId: string, [job]: readonly Job[], nowMs: number) {
  if (job === undefined) return [];
  const released = job.payload as Released;
  const { atMs = 0 } = released;
  const again = (payload: Released, dueMs: number) => [{ id: job.id, payload, dueMs }];
  if (atMs >= (await unseenSinceMs(tx, tenantId, nowMs))) return again(released, nowMs + laterMs);
  const subjects = await silentSubjects(tx, tenantId, released);
  if (subjects.length === 0) return [];
  const some = subjects.slice(0, subjectsMax);
  const looked = await reevaluate(tx, tenantId, some, deciding, { nowMs, sinceMs: atMs });
  if (looked === undefined) return again(released, nowMs + laterMs);
  const last = subjects[looked.taken - 1];
  if (looked.taken === subjects.length || last === undefined) return [];
  return again({ ...released, after: last.key.toString("base64url") }, nowMs);
}

/** Reads what is silent of entities that are free by now, in the order of the keys, after the last one that was looked at. */
async function silentSubjects(tx: Db, tenantId: string, { entityIds, after = "" }: Released) {
  const ids = entityIds.map((text) => Buffer.from(text, "base64url"));
  const entities = await readEntities(tx, tenantId, ids);
  const free = entities.flatMap((entity) => (inMaintenance(entity) ? [] : [entity.id]));
  const last = Buffer.from(after, "base64url");
  const subjects = await mutedSubjects(tx, tenantId, free);
  return subjects.filter(({ key }) => Buffer.compare(key, last) > 0).sort((a, b) => Buffer.compare(a.key, b.key));
}
