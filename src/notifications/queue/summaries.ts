import type { Fragment, PendingQuery, Row } from "postgres";
import { bigintArray, byteaArray, int4Array, textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { idText } from "../../entities/identity.ts";
import type { ThreadState } from "../kinds/kind.ts";
import { entityOf } from "../sending/compose.ts";
import { type EntityContext, memberKey, occurrenceKey, readEntities } from "../sending/delivery-context.ts";
import { deliveryId, firstId } from "../subject/delivery-id.ts";
import type { SummarySnapshot } from "../subject/snapshot.ts";
import { summarySubject } from "../subject/subject.ts";
import type { DueDelivery } from "./delivery-queue.ts";

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

/** Deliveries that go as one. */
export interface Summary {
  /** The one that is sent as the summary, under its id. */
  readonly row: DueDelivery;
  readonly others: readonly DueDelivery[];
  readonly told: SummarySnapshot;
}

/** Members whose names a summary says. */
const namedMax = 100;

/** The subject of a summary, as `summarySubject` makes it. */
export const summarySubjectOf = (db: Db, summaryId: Fragment) =>
  db`(uuid_send(${summaryId}) || '\\x0000000000000000'::bytea)`;

/** The id of the summary that a subject may stand for. */
export const summaryIdOf = (db: Db, subject: Fragment) => db`encode(substr(${subject}, 1, 16), 'hex')::uuid`;

/**
 * Reads which summaries stand for what these deliveries end, or have gone out as: none does for what was never tried. By
 * summary_members_by_subject.
 */
export async function readMemberships(tx: Db, tenantId: string, rows: readonly DueDelivery[]): Promise<Memberships> {
  const tried = rows.filter(({ occasion, lost, tries }) => occasion === "clear" || lost || tries > 0);
  const asked = [...new Map(tried.map((row) => [memberKey(row), row])).values()];
  if (asked.length === 0) return new Map();
  const found = await tx<Membership[]>`
    select m.summary_id as "summaryId", m.delivery_id as "deliveryId", m.created_ms::float8 as "createdMs", m.destination_name as "destinationName", m.subject,
      m.rule_id as "ruleId", coalesce(t.sent, false) as sent, coalesce(t.state, '{}') as state
    from unnest(
      ${textArray(asked.map(({ destinationName }) => destinationName))}::text[],
      ${byteaArray(asked.map(({ subject }) => subject))}::bytea[],
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
  return Map.groupBy(found, memberKey);
}

/** The names of these deliveries' events, by `occurrenceKey`; of those alone whose occurrence exists. */
async function readEventNames(tx: Db, tenantId: string, rows: readonly DueDelivery[]): Promise<Map<string, string>> {
  const keys = rows.flatMap(({ eventId, number }) => (eventId === null || number === null ? [] : { eventId, number }));
  if (keys.length === 0) return new Map();
  const found = await tx<{ eventId: Buffer; number: number; name: string }[]>`
    select o.event_id as "eventId", o.number, e.name
    from unnest(
      ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[], ${int4Array(keys.map(({ number }) => number))}::int4[]
    ) as asked (event_id, number)
      cross join lateral (
        select event_id, number from occurrences
        where tenant_id = ${tenantId} and event_id = asked.event_id
          and number >= asked.number and number <= asked.number order by number offset 0
      ) as o
      cross join lateral (
        select name from events where tenant_id = ${tenantId} and id >= asked.event_id and id <= asked.event_id
        order by id offset 0
      ) as e`;
  return new Map(found.map(({ eventId, number, name }) => [occurrenceKey(eventId, number), name]));
}

interface Named {
  readonly row: DueDelivery;
  readonly name: string;
  readonly entity: EntityContext;
}

/** The names of deliveries; those that are about what was deleted have none. */
async function readNames(tx: Db, tenantId: string, rows: readonly DueDelivery[]): Promise<Named[]> {
  const [events, entities] = await Promise.all([readEventNames(tx, tenantId, rows), readEntities(tx, tenantId, rows)]);
  const byId = new Map(entities.map((entity) => [entity.id.toString("hex"), entity]));
  return rows.flatMap((row) => {
    const { eventId, number, entityId, metricName } = row;
    const entity = entityId === null ? entityOf(row) : byId.get(entityId.toString("hex"));
    const isEvent = eventId !== null && number !== null;
    const name = isEvent ? events.get(occurrenceKey(eventId, number)) : (metricName ?? entity?.name);
    return entity === undefined || name === undefined ? [] : [{ row, name, entity }];
  });
}

/** The names alone where they tell members apart, else with those of their entities. */
function labelsOf(all: readonly Named[]): string[] {
  const names = new Set(all.map(({ name }) => name));
  if (names.size === all.length) return [...names];
  const isOfOne = new Set(all.map(({ entity }) => entity.id.toString("hex"))).size === 1;
  return [...new Set(all.map(({ name, entity }) => (isOfOne ? name : `${name} (${entity.name})`)))];
}

/** What was the summary before comes first, so that a try again has its id; what was tried by itself comes last. */
function byFitness(rows: readonly DueDelivery[], memberships: Memberships) {
  const rank = (row: DueDelivery) => {
    if (row.tries === 0 && !row.lost) return 1;
    return memberships.get(memberKey(row))?.some(({ summaryId }) => summaryId === row.id) ? 0 : 2;
  };
  return rows.toSorted((a, b) => rank(a) - rank(b));
}

/**
 * Makes a summary of deliveries, and returns beside it those that are about what was deleted. Of one that is left alone no summary is
 * made; `left` are those that go by themselves.
 */
export async function summarise(
  tx: Db,
  tenantId: string,
  rows: readonly DueDelivery[],
  memberships: Memberships,
): Promise<{ summary?: Summary; left: DueDelivery[]; gone: DueDelivery[] }> {
  const ordered = byFitness(rows, memberships);
  const gone = new Set<DueDelivery>();
  let named: Named[] = [];
  for (let from = 0; from < ordered.length && named.length === 0; from += namedMax) {
    const looked = ordered.slice(from, from + namedMax);
    named = await readNames(tx, tenantId, looked);
    const found = new Set(named.map(({ row }) => row));
    for (const row of looked) if (!found.has(row)) gone.add(row);
  }
  const left = rows.filter((row) => !gone.has(row));
  const [first] = named;
  if (first === undefined || left.length === 1) return { left, gone: [...gone] };
  const { row, entity } = first;
  const told: SummarySnapshot = {
    id: row.id,
    count: left.length,
    names: labelsOf(named),
    severity: left.reduce((worst, { told }) => Math.max(worst, told.severity ?? 0), 0),
    eventId: row.eventId === null ? "" : idText(row.eventId),
    entity: { id: entity.id.length === 0 ? "" : idText(entity.id), name: entity.name, dimensions: entity.dimensions },
  };
  return { summary: { row, others: left.filter((other) => other !== row), told }, left: [], gone: [...gone] };
}

/** Stores what a summary stands for, before it is sent: whatever becomes of this process, its end is known. May be repeated. */
export async function keepSummary(tx: Db, tenantId: string, { row, others, told }: Summary): Promise<void> {
  const ids = uuidArray([row.id, ...others.map(({ id }) => id)]);
  await tx`
    insert into summary_members (tenant_id, summary_id, delivery_id, created_ms, destination_name, subject, rule_id,
      of_window, over, told)
    select tenant_id, ${row.id}::uuid, id, created_ms, destination_name, subject, rule_id, entity_id is null and not told ? 'group', false,
      case when id = ${row.id} then ${JSON.stringify(told)}::jsonb end
    from due_deliveries where tenant_id = ${tenantId} and id = any(${ids}::uuid[]) order by id
    on conflict (tenant_id, summary_id, delivery_id) do update set told = excluded.told where excluded.told is not null`;
}

/** The memberships of deliveries whose last try was the summary's, and whose end was not recorded. */
export function lostMemberships(rows: readonly DueDelivery[], memberships: Memberships): Membership[] {
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
  readonly row: DueDelivery;
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
