import type { Db } from "../../db/connect.ts";
import { enqueue, type Job, type NewJob } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { type StoredMatch, standingSubjects } from "../rules/match-store.ts";
import type { RulePart } from "../silences/rules-version.ts";
import { groupJobs, groupsKind } from "../subject/group-jobs.ts";
import type { Deciding } from "./deciding.ts";
import { reevaluate } from "./reevaluate.ts";
import { repeatKind, repetitionJobs, repetitionOf } from "./repetitions.ts";

/** The jobs that look once at what rules match that were enabled or changed: one for each change. */
export const changedRulesKind = "notifications.standing";
/** What must wait for other changes is looked at again after this time. */
const laterMs = 500;

interface Payload {
  ruleIds: string[];
  /** When the rules were changed, ms. */
  atMs: number;
  /** Whether the rules were disabled before: what a delay held back is no longer waited for. */
  enabled: boolean;
  /** True if these rules group no more: what they match leaves its groups. */
  ungroups?: boolean;
  /** The last subject that was looked at, base64url; absent: none was. */
  after?: string;
}

/** Leaves a look at what rules match, in the transaction that changes them, or one of their triggers. */
export async function reevaluateLater(
  tx: Db,
  tenantId: string,
  { kind, name }: RulePart,
  change: "changed" | "enabled",
): Promise<void> {
  if (kind === "destination") return;
  const named =
    kind === "rule"
      ? tx`r.name = ${name}`
      : tx`r.name in (select rule_name from rule_triggers where tenant_id = ${tenantId} and trigger_name = ${name})`;
  const rules = await tx<{ id: string; nowMs: number }[]>`
    select r.id, floor(extract(epoch from statement_timestamp()) * 1000)::float8 as "nowMs" from rules r
    where r.tenant_id = ${tenantId} and r.enabled and ${named}`;
  const [first] = rules;
  if (first === undefined) return;
  const payload: Payload = { ruleIds: rules.map(({ id }) => id), atMs: first.nowMs, enabled: change === "enabled" };
  await enqueue(tx, { tenantId, kind: changedRulesKind }, [{ payload }], first.nowMs);
}

/** Leaves a job for each rule that takes what it matches out of its groups, which have been sent their end. */
export async function ungroup(tx: Db, tenantId: string, ruleIds: readonly string[], nowMs: number): Promise<void> {
  const jobs = ruleIds.map((ruleId): NewJob => {
    const payload: Payload = { ruleIds: [ruleId], atMs: nowMs, enabled: false, ungroups: true };
    return { payload };
  });
  await enqueue(tx, { tenantId, kind: changedRulesKind }, jobs, nowMs);
}

/** Ends, with a clear, what no longer holds; a portion of the tenant's matches a run. */
export function changedRulesJob(deciding: Deciding): JobKind {
  async function run(tx: Db, tenantId: string, [job]: readonly Job[], nowMs: number) {
    if (job === undefined) return [];
    const payload = job.payload as Payload;
    const again = (dueMs: number, after = payload.after) => [
      { id: job.id, dueMs, payload: { ...payload, ...(after !== undefined && { after }) } },
    ];
    const after = Buffer.from(payload.after ?? "", "base64url");
    const { subjects, last } = await standingSubjects(tx, tenantId, payload.ruleIds, after);
    let reached = last;
    if (subjects.length > 0) {
      const ruleIds = new Set(payload.ruleIds);
      const concerns = ({ ruleId }: StoredMatch) => ruleIds.has(ruleId);
      const { atMs: sinceMs, enabled, ungroups = false } = payload;
      const options = { nowMs, sinceMs, concerns, judges: true, ungroups, enabled };
      const looked = await reevaluate(tx, tenantId, subjects, deciding, options);
      if (looked === undefined) return again(nowMs + laterMs);
      if (looked.taken < subjects.length) reached = subjects[looked.taken - 1]?.key;
      const { byId } = await deciding.memory.now(tx, tenantId);
      const standing = [...looked.matches.values()].flatMap((byRule) => [...byRule.values()]).filter(concerns);
      const repetitions = standing.flatMap((match) => {
        const rule = byId.get(match.ruleId);
        return (rule && repetitionOf(rule, match)) ?? [];
      });
      await enqueue(tx, { tenantId, kind: repeatKind }, repetitionJobs(repetitions).jobs, nowMs);
      const members = standing.filter((match) => match.standing && match.grouped);
      await enqueue(tx, { tenantId, kind: groupsKind }, groupJobs(members).jobs, nowMs);
    }
    return reached === undefined ? [] : again(nowMs, reached.toString("base64url"));
  }
  return { name: changedRulesKind, sizeMax: 1, alone: true, run };
}
