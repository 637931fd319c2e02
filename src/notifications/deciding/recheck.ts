import { byteaArray, jsonArray, textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { readGroups } from "../groups/group-store.ts";
import { readMatches, type StoredMatch, type StoredMatches } from "../rules/match-store.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import type { WaitingDelivery } from "../subject/delivery.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import { isMatched, keyText } from "../subject/subject.ts";
import { pairText } from "./current-state.ts";
import type { Deciding } from "./deciding.ts";
import { endsIn, judgeMessages } from "./recheck-messages.ts";
import { judgeSilenced } from "./recheck-silenced.ts";
import { reevaluate } from "./reevaluate.ts";
import { unseenSinceMs } from "./rules-consumer.ts";
import { type RuleRef, unneeded, type Verdict } from "./verdict.ts";

/** Decides again on deliveries right before they are tried, and stores what follows; what it does not name is to be sent. */
export type Recheck = (
  tenantId: string,
  rows: readonly WaitingDelivery[],
  nowMs: number,
) => Promise<ReadonlyMap<string, Verdict>>;

/** The first notification after a delay, which is sent only if the trigger still matches. */
const delayed = ({ occasion, tries, dueMs, createdMs }: WaitingDelivery) =>
  occasion === "first" && tries === 0 && dueMs > createdMs;

const ofWindow = ({ told }: WaitingDelivery) => told.window !== undefined;
const ofGroup = ({ told }: WaitingDelivery) => told.group !== undefined;

/**
 * Returns which deliveries, whose time has come, are still needed, by their ids. Those whose delay has ended are held against
 * the occurrence and the entity as they are now, in a transaction of its own, which stores what follows from that.
 */
export async function recheckMatches(
  sql: Sql,
  tenantId: string,
  deliveries: readonly WaitingDelivery[],
  deciding: Deciding,
  nowMs: number,
): Promise<Map<string, Verdict>> {
  const rules = await deciding.memory.now(sql, tenantId);
  const keys = deliveries.filter((each) => !ofWindow(each)).map(({ subject }) => subject.key);
  const before = await readMatches(sql, tenantId, keys);
  const late = deliveries.filter((each) => delayed(each) && matchOf(before, each)?.firstDueMs !== undefined);
  // What happened before a delay ended comes first; what came after it does not hold the look up.
  const oldestMs = late.length > 0 ? await unseenSinceMs(sql, tenantId, nowMs) : Infinity;
  const ready = late.filter(({ dueMs }) => dueMs < oldestMs);
  const looked = ready.length > 0 ? await lookAgain(sql, tenantId, ready, rules, deciding, nowMs) : undefined;
  const postponed = new Set(looked === undefined ? late : late.filter((each) => !ready.includes(each)));
  const next = new Set(ready.filter(({ subject }) => looked?.left.has(keyText(subject.key))));
  const noted = looked === undefined ? before : await readMatches(sql, tenantId, keys);
  const held = await standingSummaries(sql, tenantId, deliveries, rules);
  const groups = await openGroups(sql, tenantId, deliveries.filter(ofGroup));
  const verdicts = new Map(
    deliveries.map((each): [string, Verdict] => {
      const match = matchOf(noted, each);
      if (!rules.byId.has(each.ruleId)) return [each.id, unneeded("the rule is disabled, or is there no more")];
      if (postponed.has(each)) return [each.id, { send: "later" }];
      if (next.has(each)) return [each.id, { send: "next" }];
      if (ofWindow(each)) return [each.id, { send: true }];
      if (held.has(each.id)) return [each.id, { send: "held" }];
      if (ofGroup(each))
        return [
          each.id,
          isNeeded(each, groups) ? { send: true } : { ...unneeded("the group is over"), ...endsIn(each) },
        ];
      if (each.occasion === "clear") return [each.id, { send: true, standing: standingRules(each, noted, rules) }];
      if (match === undefined || !match.standing || each.createdMs < match.matchedMs) {
        return [each.id, unneeded("the condition is over")];
      }
      // What is muted of a match that was notified is a later update.
      if (match.muted && match.notifiedMs === undefined && each.occasion === "first")
        return [each.id, unneeded("the entity is in maintenance")];
      const told = late.includes(each) ? looked?.look(match).told : undefined;
      return [each.id, { send: true, ...(told && { told: { ...each.told, ...told } }) }];
    }),
  );
  const notified = deliveries.filter(
    (each) => !ofWindow(each) && each.occasion !== "clear" && verdicts.get(each.id)?.send === true,
  );
  const [messages, singles] = [notified.filter(ofGroup), notified.filter((each) => !ofGroup(each))];
  for (const [id, verdict] of await judgeMessages(sql, tenantId, messages, rules, nowMs)) verdicts.set(id, verdict);
  for (const [id, verdict] of await judgeSilenced(sql, tenantId, singles, rules, nowMs)) {
    const before = verdicts.get(id);
    const told = before?.send === true && before.told ? { told: before.told } : {};
    verdicts.set(id, verdict.send === true ? { ...told, ...verdict } : verdict);
  }
  return verdicts;
}

const matchOf = (noted: StoredMatches, { subject, ruleId }: WaitingDelivery) =>
  noted.get(subject.key.toString("latin1"))?.get(ruleId);

/** Tells when the groups were opened whose messages wait, by their keys; those that are over are left out. */
async function openGroups(
  db: Db,
  tenantId: string,
  deliveries: readonly WaitingDelivery[],
): Promise<Map<string, number>> {
  const opened = new Map<string, number>();
  for (const [ruleId, some] of Map.groupBy(deliveries, (each) => each.ruleId)) {
    const groups = await readGroups(
      db,
      tenantId,
      ruleId,
      some.map(({ subject }) => subject.key),
    );
    for (const { key, openedMs } of groups) if (openedMs !== undefined) opened.set(keyText(key), openedMs);
  }
  return opened;
}

/** Tells whether a message of a group is still needed: its end always is, anything else while what it opened goes on. */
const isNeeded = ({ subject, occasion, createdMs }: WaitingDelivery, groups: ReadonlyMap<string, number>) =>
  occasion === "clear" || (groups.get(keyText(subject.key)) ?? Infinity) <= createdMs;

/** An end that was held until others end comes after all that began meanwhile; else only what stood then counts. */
function standingRules(
  { subject, destinationName, createdMs, dueMs }: WaitingDelivery,
  noted: StoredMatches,
  { byId }: TenantRules,
) {
  const matches = [...(noted.get(subject.key.toString("latin1"))?.values() ?? [])];
  return matches.flatMap(({ ruleId, standing, grouped, notifiedMs, firstDueMs, matchedMs }) => {
    const counts = standing && !grouped && notifiedMs !== undefined && (matchedMs <= createdMs || dueMs > createdMs);
    const rule = byId.get(ruleId);
    if (!counts || !rule?.destinationNames.includes(destinationName)) return [];
    return [{ id: ruleId, name: rule.name, delayed: firstDueMs !== undefined }];
  });
}

/** An end, and the rules whose matches it waits for. */
export interface HeldEnd {
  readonly subject: Buffer;
  readonly destinationName: string;
  readonly awaited: readonly RuleRef[];
}

/**
 * Locks what ends wait for, until they are stored: a change of it waits for the commit, and then finds them. Returns what tells whether an
 * end still has one to wait for. Rules before matches, as when a rule is deleted; both before rows of due_deliveries.
 */
export async function shareAwaited(
  tx: Db,
  tenantId: string,
  ends: readonly HeldEnd[],
): Promise<(end: HeldEnd) => boolean> {
  const awaited = new Map(ends.flatMap((end) => end.awaited.map(({ id, name }) => [id, name])));
  const names = textArray([...awaited.values()]);
  const [rules, notified, matches] = await Promise.all([
    tx<{ id: string; enabled: boolean }[]>`
      select id, enabled from rules where tenant_id = ${tenantId} and name = any(${names}::text[]) order by name for share`,
    tx<{ ruleName: string; destinationName: string }[]>`
      select rule_name as "ruleName", destination_name as "destinationName" from rule_destinations
      where tenant_id = ${tenantId} and rule_name = any(${names}::text[])`,
    tx<{ subject: Buffer; ruleId: string }[]>`
      select subject, rule_id as "ruleId" from rule_matches
      where tenant_id = ${tenantId} and subject = any(${byteaArray(ends.map(({ subject }) => subject))}::bytea[])
        and rule_id = any(${uuidArray([...awaited.keys()])}::uuid[]) and standing
      order by subject, rule_id for share`,
  ]);
  const enabled = new Set(rules.flatMap((rule) => (rule.enabled ? rule.id : [])));
  const destinations = Map.groupBy(notified, ({ ruleName }) => ruleName);
  const standing = new Set(matches.map(({ subject, ruleId }) => `${keyText(subject)}${ruleId}`));
  return ({ subject, destinationName, awaited }) =>
    awaited.some(
      ({ id, name }) =>
        enabled.has(id) &&
        standing.has(`${keyText(subject)}${id}`) &&
        destinations.get(name)?.some((each) => each.destinationName === destinationName),
    );
}

/** Returns the ends of summaries of which a match stands that the destination is notified of, by their ids. */
async function standingSummaries(
  db: Db,
  tenantId: string,
  deliveries: readonly WaitingDelivery[],
  { byId }: TenantRules,
): Promise<Set<string>> {
  const held = new Set<string>();
  for (const { id, destinationName, told } of deliveries) {
    if (told.summary === undefined) continue;
    const notifying = [...byId.values()].filter(({ destinationNames }) => destinationNames.includes(destinationName));
    // Both by their keys.
    const found = await db`
      select from summary_members m
      where m.tenant_id = ${tenantId} and m.summary_id = ${told.summary.id} and not m.over
        and m.rule_id = any(${uuidArray(notifying.map((rule) => rule.id))}::uuid[])
        and (m.of_window or exists (
          select from rule_matches r
          where r.tenant_id = ${tenantId} and r.subject = m.subject and r.rule_id = m.rule_id and r.standing
            and r.matched_ms <= m.created_ms) or exists (
          select from alert_groups g
          where g.tenant_id = ${tenantId} and g.rule_id = m.rule_id and g.group_key = m.subject
            and g.opened_ms <= m.created_ms))
      limit 1`;
    if (found.count > 0) held.add(id);
  }
  return held;
}

async function lookAgain(
  sql: Sql,
  tenantId: string,
  late: readonly WaitingDelivery[],
  rules: TenantRules,
  deciding: Deciding,
  nowMs: number,
) {
  const subjects = new Map(
    late
      .map(({ subject }) => subject)
      .filter(isMatched)
      .map((subject) => [keyText(subject.key), subject]),
  );
  return await transaction(sql, async (tx) => {
    const sinceMs = Math.max(...late.map(({ dueMs }) => dueMs));
    const options = { nowMs, sinceMs, delayEnds: new Set(late.map(pairText)) };
    const seen = await reevaluate(tx, tenantId, [...subjects.values()], deciding, options);
    if (seen === undefined) return undefined;
    const { matches, look } = seen;
    const left = new Set([...subjects.keys()].slice(seen.taken));
    const pairs = new Map(late.map((each) => [pairText(each), matchOf(matches, each)]));
    const found = [...pairs.values()].flatMap((match) => (match ? [{ match, told: look(match).told }] : []));
    await keepTold(tx, tenantId, found, rules);
    return { look, left };
  });
}

/** The look is one for all destinations of a rule and for all their tries: each reports what it has found. */
async function keepTold(
  tx: Db,
  tenantId: string,
  found: readonly { match: StoredMatch; told: DeliverySnapshot }[],
  { byId }: TenantRules,
): Promise<void> {
  const each = found.flatMap(({ match: { ruleId, subject }, told }) =>
    (byId.get(ruleId)?.destinationNames ?? []).map((name) => ({ name, key: subject.key, ruleId, told })),
  );
  // By due_deliveries_by_age, then by the key.
  await tx`
    with meant as materialized (
      select jsonb_object_agg(d.id, now.told) as by_id from unnest(
        ${textArray(each.map(({ name }) => name))}::text[],
        ${byteaArray(each.map(({ key }) => key))}::bytea[],
        ${uuidArray(each.map(({ ruleId }) => ruleId))}::uuid[],
        ${jsonArray(each.map(({ told }) => told))}::jsonb[]
      ) as now (destination_name, subject, rule_id, told)
      cross join lateral (
        select id from due_deliveries
        where tenant_id = ${tenantId} and destination_name = now.destination_name and subject = now.subject
          and created_ms >= 0 and rule_id = now.rule_id and occasion = 'first' order by created_ms, id offset 0
      ) as d
    )
    update due_deliveries set told = told || ((select by_id from meant) -> id::text)
    where tenant_id = ${tenantId} and id = any(array(select jsonb_object_keys(by_id)::uuid from meant))`;
}
