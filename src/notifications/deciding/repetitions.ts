import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { NewJob } from "../../jobs/queue.ts";
import type { StoredMatch } from "../rules/match-store.ts";
import type { Manner } from "../rules/tenant-rules.ts";
import { repeatMs } from "./decide.ts";

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
  if (match.grouped) return undefined;
  if (rule.repeatWhile === RepeatWhile.UNSPECIFIED || !match.standing || match.muted || dueMs === undefined)
    return undefined;
  return { ruleId: rule.id, key: match.subject.key, dueMs };
}

/** The jobs of repetitions. A later one of a match makes an earlier one void. */
export function repetitionJobs(repetitions: readonly Repetition[]): { kind: string; jobs: NewJob[] } {
  const jobs = repetitions.map(({ ruleId, key, dueMs }): [string, NewJob] => {
    const payload: RepetitionPayload = { ruleId, key: key.toString("base64url") };
    const id = `${payload.key}:${ruleId}:${dueMs}`;
    return [id, { id, payload, dueMs }];
  });
  return { kind: repeatKind, jobs: [...new Map(jobs).values()] };
}
