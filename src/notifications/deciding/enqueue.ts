import { byteaArray, int4Array, textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import { planWithoutValues } from "../../db/plans.ts";
import { paced } from "../../event-loop.ts";
import { failpoint } from "../../failpoint.ts";
import { announce, enqueue } from "../../jobs/queue.ts";
import { writeMatches } from "../rules/match-store.ts";
import { type HeldUntil, shareSilences } from "../silences/silences.ts";
import { deliveryId } from "../subject/delivery-id.ts";
import type { Notice, Over } from "../subject/notice.ts";
import { keyText } from "../subject/subject.ts";
import { portion, type Stage } from "./batch.ts";
import { repetitionJobs, repetitionOf } from "./repetitions.ts";

/** The work that due deliveries are, in the table of all that is due. */
const lane = "deliveries";

const bytes = (value: Buffer | undefined) => (value === undefined ? null : `\\x${value.toString("hex")}`);

/** Holds what is due now; what is due later is looked at when it is. */
function holdOf({ holds, occasion, dueMs }: Notice, destinationName: string, nowMs: number) {
  return occasion === "clear" || dueMs > nowMs ? undefined : holds?.get(destinationName);
}

/** A row for each destination. A repetition that a silence holds is none. */
function toRows(notice: Notice, heldUntil: HeldUntil, nowMs: number) {
  const { ruleId, ruleName, destinationNames, triggerNames, subject, told, occasion, createdMs, dueMs } = notice;
  const spoken = destinationNames.filter((name) => occasion !== "repeat" || holdOf(notice, name, nowMs) === undefined);
  return spoken.map((destinationName) => {
    const hold = holdOf(notice, destinationName, nowMs);
    return {
      id: deliveryId(createdMs),
      created_ms: createdMs,
      rule_id: ruleId,
      rule_name: ruleName,
      trigger_names: triggerNames,
      destination_name: destinationName,
      subject: bytes(subject.key),
      event_id: bytes(subject.eventId),
      number: subject.number ?? null,
      entity_id: bytes(subject.entityId),
      metric_name: subject.metricName ?? null,
      occasion,
      told: subject.metricLabels === undefined ? told : { ...told, labels: subject.metricLabels },
      due_ms: hold === undefined ? dueMs : heldUntil(hold, ruleName, destinationName),
      silence_id: hold?.silenceId ?? null,
    };
  });
}

/** Drops updates after one that is held with them: the first is sent as all of them have left it. */
function newestOnly(rows: readonly ReturnType<typeof toRows>[number][]) {
  const seen = new Set<string>();
  return rows.filter(({ silence_id, destination_name, rule_id, subject, occasion }) => {
    if (silence_id === null) return true;
    const key = JSON.stringify([destination_name, rule_id, subject]);
    const follows = seen.has(key) && occasion !== "first";
    seen.add(key);
    return !follows;
  });
}

/**
 * Stores what was decided and its messages, and makes due now what is not needed any more, so that it is cancelled soon. At the end
 * of the transaction: what is due is locked after all that lies below an event. Statements may still be under way when it resolves: what
 * they fail with fails the transaction.
 */
export const enqueueNotices: Stage = async ({ tx, tenantId, nowMs, decided, notices, over, jobs }) => {
  const pace = paced(undefined, tenantId);
  const last = new Map(decided.map((each) => [`${keyText(each.match.subject.key)}${each.rule.id}`, each]));
  const matches = [...last.values()].map(({ match }) => match);
  const sent: PromiseLike<unknown>[] = [];
  const send = (statement: PromiseLike<unknown>) => {
    statement.then(undefined, () => undefined); // the transaction fails with it
    sent.push(statement);
  };
  for (let from = 0; from < matches.length; from += portion) {
    if (from > 0) await Promise.all([pace(), ...sent]);
    send(writeMatches(tx, tenantId, matches.slice(from, from + portion)));
  }
  const holds = notices.flatMap((notice) =>
    notice.destinationNames.flatMap((name) => holdOf(notice, name, nowMs) ?? []),
  );
  const heldUntil = await shareSilences(tx, tenantId, holds, nowMs);
  let dueMs = over.length > 0 && (await hasten(tx, tenantId, over, nowMs)) > 0 ? nowMs : Infinity;
  for (let from = 0; from < notices.length; from += portion) {
    if (from > 0) await Promise.all([pace(), ...sent]);
    const rows = newestOnly(notices.slice(from, from + portion).flatMap((notice) => toRows(notice, heldUntil, nowMs)));
    if (rows.length > 0) send(storeRows(tx, tenantId, rows, nowMs));
    dueMs = rows.reduce((least, row) => Math.min(least, row.due_ms), dueMs);
  }
  failpoint("enqueue:written");
  if (dueMs < Infinity) send(announce(tx, { tenantId, kind: lane }, BigInt(dueMs)));
  const repetitions = decided.flatMap(({ rule, match }) => repetitionOf(rule, match) ?? []);
  for (const { kind, jobs: some } of [...jobs, repetitionJobs(repetitions)]) {
    send(enqueue(tx, { tenantId, kind }, some, nowMs));
  }
  return { dueMs };
};

/**
 * Stores deliveries. Of one match and destination one alone is held, and what follows an opening notification that is held is said by that one;
 * one that is being judged already may have been read as it was before. By due_deliveries_by_age.
 */
const storeRows = (tx: Db, tenantId: string, rows: readonly object[], nowMs: number) =>
  tx`
      insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, due_ms, silence_id, lease_until_ms, fence, tries, slow_tries,
        attempts, error)
      select home.tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, due_ms, silence_id, 0, 0, 0, 0, '[]', ''
      from ${home(tx, tenantId)}, jsonb_populate_recordset(null::due_deliveries, ${JSON.stringify(rows)}::jsonb) as made
      where made.occasion in ('first', 'clear') or made.told ? 'group' or not exists (
        select from due_deliveries d
        where d.tenant_id = ${tenantId} and d.destination_name = made.destination_name and d.subject = made.subject
          and d.created_ms >= 0 and d.rule_id = made.rule_id and d.silence_id is not null and d.lease_until_ms = 0
          and case when made.silence_id is null then d.occasion = 'first' else d.due_ms > ${BigInt(nowMs)} end)`.execute();

/** Ends of other rules may have waited for this one's. By due_deliveries_by_age, then by the key. Returns how many there were. */
async function hasten(tx: Db, tenantId: string, over: readonly Over[], nowMs: number): Promise<number> {
  const each = over.flatMap(({ rule, key, heldOnly }) =>
    rule.destinationNames.map((destinationName) => ({ ruleId: rule.id, key, destinationName, heldOnly })),
  );
  const moved = await tx`
    update due_deliveries set due_ms = ${BigInt(nowMs)}
    where tenant_id = ${tenantId} and due_ms > ${BigInt(nowMs)} and id = any(array(
      select d.id from unnest(
        ${textArray(each.map(({ destinationName }) => destinationName))}::text[],
        ${byteaArray(each.map(({ key }) => key))}::bytea[],
        ${textArray(each.map(({ ruleId }) => ruleId))}::uuid[],
        ${int4Array(each.map(({ heldOnly }) => (heldOnly ? 1 : 0)))}::int4[]
      ) as over (destination_name, subject, rule_id, held_only)
      cross join lateral (
        select id, silence_id from due_deliveries
        where tenant_id = ${tenantId} and destination_name = over.destination_name and subject = over.subject
          and created_ms >= 0 and (rule_id = over.rule_id or occasion = 'clear') order by created_ms, id offset 0
      ) as d
      where held_only = 0 or d.silence_id is not null
    ))`;
  return moved.count;
}

/**
 * Makes due now the ends that wait at these destinations of a rule that notifies them no more: they may have waited for its matches. In
 * the transaction that changes the rule. By due_deliveries_by_due, then by the key.
 */
export async function releaseEnds(tx: Db, tenantId: string, destinationNames: readonly string[]): Promise<void> {
  if (destinationNames.length === 0) return;
  // With values, a tenant whose rows came after the last ANALYZE counts as one without any: all of its rows were read by the key.
  planWithoutValues(tx);
  const [now] = await tx<[{ ms: bigint }]>`
    select floor(extract(epoch from statement_timestamp()) * 1000)::int8 as ms`;
  const moved = await tx`
    update due_deliveries set due_ms = ${now.ms}
    where tenant_id = ${tenantId} and due_ms > ${now.ms} and id = any(array(
      select d.id from unnest(${textArray(destinationNames)}::text[]) as left_by (destination_name)
      cross join lateral (
        select id, occasion, tries from due_deliveries
        where tenant_id = ${tenantId} and destination_name = left_by.destination_name and due_ms > ${now.ms} and tries >= 0
        order by destination_name, due_ms, id offset 0
      ) as d
      where d.occasion = 'clear' and d.tries = 0
    ))`;
  if (moved.count > 0) await announce(tx, { tenantId, kind: lane }, now.ms);
}
