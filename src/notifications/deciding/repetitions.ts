import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { Db } from "../../db/connect.ts";
import { enqueue } from "../../jobs/queue.ts";
import { type Manner, repeatMs } from "./decide.ts";
import type { StoredMatch } from "./match-store.ts";

/** The jobs that repeat notifications by the clock: one for each rule and subject that was notified. */
export const repeatKind = "notifications.repeat";

/** When a match is to be notified once more. */
export interface Repetition {
  readonly ruleId: string;
  readonly key: Buffer;
  readonly dueMs: number;
}

/** The payload of such a job. */
export interface RepetitionPayload {
  ruleId: string;
  /** The subject's key, base64url. */
  key: string;
}

/** The next repetition by the clock of what was decided; undefined: there is none. */
export function repetitionOf(rule: Manner & { id: string }, match: StoredMatch): Repetition | undefined {
  const dueMs = repeatMs(rule, match);
  if (rule.repeatWhile === RepeatWhile.UNSPECIFIED || !match.standing || match.muted || dueMs === undefined)
    return undefined;
  return { ruleId: rule.id, key: match.subject.key, dueMs };
}

/** Leaves the jobs of repetitions, in the transaction that decides on their matches. A later one of a match makes an earlier one void. */
export async function repeatLater(
  tx: Db,
  tenantId: string,
  repetitions: readonly Repetition[],
  nowMs: number,
): Promise<void> {
  const jobs = repetitions.map(({ ruleId, key, dueMs }) => {
    const payload: RepetitionPayload = { ruleId, key: key.toString("base64url") };
    return { id: `${payload.key}:${ruleId}:${dueMs}`, payload, dueMs };
  });
  await enqueue(tx, { tenantId, kind: repeatKind }, jobs, nowMs);
}
