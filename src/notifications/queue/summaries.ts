import type { Fragment, PendingQuery, Row } from "postgres";
import { bigintArray, byteaArray, textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import type { ThreadState } from "../kinds/attempt-outcome.ts";
import { deliveryId, firstId } from "../subject/delivery-id.ts";
import { summarySubject } from "../subject/subject.ts";
import { type ClaimedDelivery, memberKey } from "./delivery-queue.ts";

/** A summary that stands for a rule's match at a destination. */
export interface Membership {
  readonly summaryId: string;
  /** The delivery that the summary reported. */
  readonly deliveryId: string;
  /** When that was decided, ms. */
  readonly createdMs: number;
  readonly destinationName: string;
  readonly subject: Buffer;
  readonly ruleId: string;
  /** Whether the summary went out, or may have. */
  readonly sent: boolean;
  /** What the destination's kind keeps of the summary. */
  readonly state: ThreadState;
}

/** By `memberKey`: the summaries that stand for a rule's match and have not noted its end. */
export type Memberships = ReadonlyMap<string, readonly Membership[]>;

/** The subject of a summary, as `summarySubject` makes it. */
export const summarySubjectOf = (db: Db, summaryId: Fragment) =>
  db`(uuid_send(${summaryId}) || '\\x0000000000000000'::bytea)`;

/** The id of the summary that a subject may stand for. */
export const summaryIdOf = (db: Db, subject: Fragment) => db`encode(substr(${subject}, 1, 16), 'hex')::uuid`;

/**
 * Reads which summaries stand for what these deliveries end, or have gone out as: none does for what was never tried. By
 * summary_members_by_subject.
 */
export async function readMemberships(
  tx: Db,
  tenantId: string,
  rows: readonly ClaimedDelivery[],
): Promise<Memberships> {
  const tried = rows.filter(({ occasion, lost, tries }) => occasion === "clear" || lost || tries > 0);
  const asked = [...new Map(tried.map((row) => [memberKey(row), row])).values()];
  if (asked.length === 0) return new Map();
  const found = await tx<Membership[]>`
    select m.summary_id as "summaryId", m.delivery_id as "deliveryId", m.created_ms::float8 as "createdMs", m.destination_name as "destinationName", m.subject,
      m.rule_id as "ruleId", coalesce(t.sent, false) as sent, coalesce(t.state, '{}') as state
    from unnest(
      ${textArray(asked.map(({ destinationName }) => destinationName))}::text[],
      ${byteaArray(asked.map(({ subject }) => subject.key))}::bytea[],
      ${uuidArray(asked.map(({ ruleId }) => ruleId))}::uuid[]
    ) as asked (destination_name, subject, rule_id)
      cross join lateral (
        select * from summary_members
        where tenant_id = ${tenantId} and destination_name = asked.destination_name and subject = asked.subject
          and created_ms >= 0 and rule_id = asked.rule_id and not over offset 0
      ) as m
      left join lateral (
        select * from delivery_threads
        where tenant_id = ${tenantId} and destination_name = m.destination_name
          and subject = ${summarySubjectOf(tx, tx`m.summary_id`)} offset 0
      ) as t on true`;
  return Map.groupBy(found, ({ subject: key, ...each }) => memberKey({ ...each, subject: { key } }));
}

/** The memberships of deliveries whose last try was the summary's, and whose end was not recorded. */
export function lostMemberships(rows: readonly ClaimedDelivery[], memberships: Memberships): Membership[] {
  return rows.flatMap((row) =>
    row.lost ? (memberships.get(memberKey(row)) ?? []).filter((each) => !each.sent && each.deliveryId === row.id) : [],
  );
}

/** Notes that summaries may have gone out. */
export async function noteLost(tx: Db, tenantId: string, lost: readonly Membership[], nowMs: number): Promise<void> {
  if (lost.length === 0) return;
  const ids = uuidArray([...new Set(lost.map(({ summaryId }) => summaryId))]);
  await tx`
    insert into delivery_threads as t (tenant_id, destination_name, subject, state, sent, updated_ms)
    select tenant_id, destination_name, ${summarySubjectOf(tx, tx`summary_id`)},
      jsonb_build_object('match', created_ms::text), true, ${BigInt(nowMs)}
    from summary_members
    where tenant_id = ${tenantId} and summary_id = any(${ids}::uuid[]) and delivery_id = any(${ids}::uuid[]) and told is not null
    order by summary_id
    on conflict (tenant_id, destination_name, subject) do update set sent = true, updated_ms = excluded.updated_ms`;
}

/** A delivery that is done and ends matches for which summaries stand. */
export interface MemberEnd {
  readonly row: ClaimedDelivery;
  readonly over: readonly Membership[];
}

/**
 * Sends statements, in the transaction that records these deliveries and before it removes them: each summary gets its end,
 * which waits until the last of its matches has ended, or the end that waits is looked at now. One end a rule, since a rule may be
 * disabled meanwhile: the first that is sent ends the summary.
 */
export function endMembers(
  tx: Db,
  tenantId: string,
  ended: readonly MemberEnd[],
  nowMs: number,
): PendingQuery<Row[]>[] {
  const now = BigInt(nowMs);
  const all = ended.flatMap(({ row, over }) => over.map((membership) => ({ row, ...membership })));
  const ends = [...new Map(all.map((each) => [`${each.summaryId} ${each.ruleId}`, each])).values()];
  const summaryIds = uuidArray(ends.map(({ summaryId }) => summaryId));
  return [
    tx`
      insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        occasion, told, due_ms, lease_until_ms, fence, tries, slow_tries, attempts, error)
      select d.tenant_id, ends.id, ${now}, d.rule_id, d.rule_name, d.trigger_names, d.destination_name,
        ${summarySubjectOf(tx, tx`ends.summary_id`)}, 'clear', jsonb_build_object('summary', s.told), ${now}, 0, 0, 0, 0, '[]', ''
      from unnest(
        ${uuidArray(ends.map(() => deliveryId(nowMs)))}::uuid[], ${uuidArray(ends.map(({ row }) => row.id))}::uuid[],
        ${bigintArray(ends.map(({ row }) => row.fence))}::bigint[], ${summaryIds}::uuid[]
      ) as ends (id, row_id, fence, summary_id)
        cross join lateral (
          select * from due_deliveries where tenant_id = ${tenantId} and id = ends.row_id and fence = ends.fence offset 0
        ) as d
        cross join lateral (
          select told from summary_members
          where tenant_id = ${tenantId} and summary_id = ends.summary_id and delivery_id = ends.summary_id
            and told is not null offset 0
        ) as s
      where not exists (
        select from due_deliveries w
        where w.tenant_id = ${tenantId} and w.destination_name = d.destination_name
          and w.subject = ${summarySubjectOf(tx, tx`ends.summary_id`)} and w.created_ms >= 0 and w.rule_id = d.rule_id)`,
    // By due_deliveries_by_age, then by the key.
    tx`
      update due_deliveries set due_ms = ${now}
      where tenant_id = ${tenantId} and due_ms > ${now} and id = any(array(
        select d.id from unnest(
          ${textArray(ends.map(({ destinationName }) => destinationName))}::text[],
          ${byteaArray(ends.map(({ summaryId }) => summarySubject(summaryId)))}::bytea[]
        ) as ended (destination_name, subject)
        cross join lateral (
          select id, tries from due_deliveries
          where tenant_id = ${tenantId} and destination_name = ended.destination_name and subject = ended.subject
            and created_ms >= 0 order by created_ms, id offset 0
        ) as d
        where d.tries = 0))`,
    tx`
      update summary_members set over = true
      where tenant_id = ${tenantId} and summary_id = any(${summaryIds}::uuid[])
        and delivery_id = any(array(
          select ended.delivery_id
          from unnest(
            ${uuidArray(all.map(({ deliveryId }) => deliveryId))}::uuid[], ${uuidArray(all.map(({ row }) => row.id))}::uuid[],
            ${bigintArray(all.map(({ row }) => row.fence))}::bigint[]
          ) as ended (delivery_id, row_id, fence)
            cross join lateral (
              select from due_deliveries where tenant_id = ${tenantId} and id = ended.row_id and fence = ended.fence offset 0
            ) as held))`,
  ];
}

/** Forgets what summaries that have surely not gone out would have stood for; their own deliveries stay, so that they go under the same ids. */
export const forgetMembers = (tx: Db, tenantId: string, summaryIds: readonly string[]) => tx`
  delete from summary_members
  where tenant_id = ${tenantId} and summary_id = any(${uuidArray(summaryIds)}::uuid[]) and delivery_id <> summary_id`;

/** Summaries that one look forgets: each may have 10,000 members. */
const oldMax = 10;

/**
 * Forgets what summaries from before `beforeMs` stood for, once none of their matches stands and no end waits. Returns whether there may be
 * more. May be repeated.
 */
export async function forgetOldSummaries(sql: Sql, tenantId: string, beforeMs: number): Promise<boolean> {
  const old = await sql<{ id: string }[]>`
    select h.summary_id as id from summary_members h
    where h.tenant_id = ${tenantId} and h.summary_id < ${firstId(beforeMs)}::uuid and h.told is not null
      and not exists (
        select from due_deliveries d
        where d.tenant_id = ${tenantId} and d.destination_name = h.destination_name
          and d.subject = ${summarySubjectOf(sql, sql`h.summary_id`)} and d.created_ms >= 0)
      and not exists (
        select from summary_members m
          cross join lateral (
            select from rule_matches
            where tenant_id = ${tenantId} and subject = m.subject and rule_id = m.rule_id and standing
              and matched_ms <= m.created_ms offset 0
          ) as r
        where m.tenant_id = ${tenantId} and m.summary_id = h.summary_id and not m.over)
      and not exists (
        select from summary_members m
          cross join lateral (
            select from alert_groups
            where tenant_id = ${tenantId} and rule_id = m.rule_id and group_key = m.subject and opened_ms <= m.created_ms offset 0
          ) as g
        where m.tenant_id = ${tenantId} and m.summary_id = h.summary_id and not m.over)
    order by h.summary_id limit ${oldMax}`;
  if (old.length > 0)
    await sql`
      delete from summary_members
      where tenant_id = ${tenantId} and summary_id = any(${uuidArray(old.map(({ id }) => id))}::uuid[])`;
  return old.length === oldMax;
}
