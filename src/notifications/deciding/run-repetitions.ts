import type { Db } from "../../db/connect.ts";
import type { Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { readMatches, type StoredMatch } from "../rules/match-store.ts";
import { pairText } from "./current-state.ts";
import type { Deciding } from "./deciding.ts";
import { reevaluate } from "./reevaluate.ts";
import { type RepetitionPayload, repeatKind, repetitionOf } from "./repetitions.ts";

/** What must wait for other changes is looked at again after this time. */
const laterMs = 500;
const runMax = 200;

/** Looks at matches whose interval has ended, and notifies those once more that stand. */
export function repeatJob(deciding: Deciding): JobKind {
  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    const pairs = new Set(jobs.map(pairOf));
    const noted = await readMatches(tx, tenantId, [...new Set(jobs.map(keyOf))]);
    const matches = [...noted.values()].flatMap((byRule) => [...byRule.values()]);
    const { byId } = await deciding.memory.now(tx, tenantId);
    const dueMs = new Map<StoredMatch, number>();
    for (const match of matches) {
      const rule = pairs.has(pairText(match)) ? byId.get(match.ruleId) : undefined;
      const atMs = (rule && repetitionOf(rule, match)?.dueMs) ?? Infinity;
      if (atMs <= nowMs) dueMs.set(match, atMs);
    }
    if (dueMs.size === 0) return [];
    const subjects = new Map([...dueMs.keys()].map(({ subject }) => [subject.key.toString("latin1"), subject]));
    const concerns = (match: StoredMatch) => pairs.has(pairText(match));
    const looked = await reevaluate(tx, tenantId, [...subjects.values()], deciding, {
      nowMs,
      sinceMs: Math.max(...dueMs.values()),
      concerns,
    });
    const again = (some: readonly Job[], dueMs: number) => some.map(({ id, payload }) => ({ id, payload, dueMs }));
    if (looked === undefined) return again(jobs, nowMs + laterMs);
    const left = new Set([...subjects.keys()].slice(looked.taken));
    return again(
      jobs.filter((job) => left.has(keyOf(job).toString("latin1"))),
      nowMs,
    );
  }
  return { name: repeatKind, sizeMax: runMax, timed: true, run };
}

const keyOf = ({ payload }: Job) => Buffer.from((payload as RepetitionPayload).key, "base64url");
const pairOf = (job: Job) =>
  pairText({ subject: { key: keyOf(job) }, ruleId: (job.payload as RepetitionPayload).ruleId });
