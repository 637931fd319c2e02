import { byteaArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import { keyText, occurrenceRef, type Subject, type SubjectColumns, toSubject } from "../subject/subject.ts";

/** No rule: its row carries the chain of an occurrence that rules have made. */
export const nilRule = "00000000-0000-0000-0000-000000000000";

/** What of an occurrence is reported, and reported again when it changes. */
export interface Signature {
  readonly severity: number;
  readonly status: number;
  readonly acknowledged: boolean;
}

/** How a rule stands to a subject that it has matched. Times are ms since the epoch. */
export interface Match {
  /** Whether it matches now. */
  readonly standing: boolean;
  /** Whether something is held back because the entity is in maintenance. */
  readonly muted: boolean;
  /** What was reported last; undefined for what is no occurrence. */
  readonly told: Signature | undefined;
  /** When the match that stands, or stood last, began. */
  readonly matchedMs: number;
  /** When the delay of its first notification ends; undefined: none waits for a look at its end. */
  readonly firstDueMs: number | undefined;
  /** When a first or repeated notification was last due; undefined: never. */
  readonly notifiedMs: number | undefined;
  /** When its newest delivery was decided. */
  readonly lastMs: number;
}

/** What is noted of a rule and a subject. */
export interface StoredMatch extends Match {
  readonly subject: Subject;
  readonly ruleId: string;
  readonly triggerNames: readonly string[];
  readonly chain: readonly string[];
  /** Whether it is notified as a member of a group. */
  readonly grouped?: boolean;
  /** The newest point that decided anything. */
  readonly value: number | undefined;
  readonly valueMs: number | undefined;
}

/** What is noted of subjects, by their keys, then by rules' ids. */
export type StoredMatches = Map<string, Map<string, StoredMatch>>;

interface MatchedColumns extends SubjectColumns {
  entity_id: Buffer;
}

interface MatchColumns extends MatchedColumns {
  rule_id: string;
  trigger_names: string[];
  standing: boolean;
  muted: boolean;
  grouped: boolean;
  chain: string[];
  severity: number | null;
  status: number | null;
  acknowledged: boolean | null;
  value: number | null;
  value_ms: number | null;
  matched_ms: number;
  first_due_ms: number | null;
  notified_ms: number | null;
  last_ms: number;
}

function toMatch(row: MatchColumns): StoredMatch {
  const { severity, status, acknowledged } = row;
  return {
    subject: toSubject(row),
    ruleId: row.rule_id,
    triggerNames: row.trigger_names,
    chain: row.chain,
    standing: row.standing,
    muted: row.muted,
    grouped: row.grouped,
    told:
      severity === null || status === null || acknowledged === null ? undefined : { severity, status, acknowledged },
    value: row.value ?? undefined,
    valueMs: row.value_ms ?? undefined,
    matchedMs: row.matched_ms,
    firstDueMs: row.first_due_ms ?? undefined,
    notifiedMs: row.notified_ms ?? undefined,
    lastMs: row.last_ms,
  };
}

const bytes = (value: Buffer | undefined) => (value === undefined ? null : `\\x${value.toString("hex")}`);

function toRow({ subject, told, ...match }: StoredMatch) {
  return {
    subject: bytes(subject.key),
    rule_id: match.ruleId,
    entity_id: bytes(subject.entityId),
    event_id: bytes(subject.eventId),
    number: subject.number ?? null,
    metric_name: subject.metricName ?? null,
    metric_labels: subject.metricLabels ?? null,
    trigger_names: match.triggerNames,
    standing: match.standing,
    muted: match.muted,
    grouped: match.grouped ?? false,
    chain: match.chain,
    severity: told?.severity ?? null,
    status: told?.status ?? null,
    acknowledged: told?.acknowledged ?? null,
    value: match.value ?? null,
    value_ms: match.valueMs ?? null,
    matched_ms: match.matchedMs,
    first_due_ms: match.firstDueMs ?? null,
    notified_ms: match.notifiedMs ?? null,
    last_ms: match.lastMs,
  };
}

/** Reads what is noted of subjects, by the primary key. */
export async function readMatches(tx: Db, tenantId: string, keys: readonly Buffer[]): Promise<StoredMatches> {
  const found: StoredMatches = new Map();
  if (keys.length === 0) return found;
  const rows = await tx<MatchColumns[]>`
    select subject, rule_id, entity_id, event_id, number, metric_name, metric_labels, trigger_names, standing, muted, grouped, chain, severity,
      status, acknowledged, value, value_ms::float8 as value_ms, matched_ms::float8 as matched_ms,
      first_due_ms::float8 as first_due_ms, notified_ms::float8 as notified_ms, last_ms::float8 as last_ms
    from rule_matches
    where tenant_id = ${tenantId} and subject = any(${byteaArray(keys)}::bytea[])`.execute();
  for (const row of rows) note(found, toMatch(row));
  return found;
}

/** Returns the ids of the rules that match these subjects now, by `keyText`. By the primary key. */
export async function matchingRules(db: Db, tenantId: string, keys: readonly Buffer[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  if (keys.length === 0) return found;
  const rows = await db<{ subject: Buffer; ruleId: string }[]>`
    select subject, rule_id as "ruleId" from rule_matches
    where tenant_id = ${tenantId} and subject = any(${byteaArray(keys)}::bytea[]) and standing`;
  for (const { subject, ruleId } of rows) {
    const ids = found.get(keyText(subject));
    if (ids === undefined) found.set(keyText(subject), [ruleId]);
    else ids.push(ruleId);
  }
  return found;
}

/** Locks what is noted of subjects that no event's lock covers, in the order of their keys. */
export async function lockMatches(tx: Db, tenantId: string, keys: readonly Buffer[]): Promise<void> {
  await tx`
    select from rule_matches where tenant_id = ${tenantId} and subject = any(${byteaArray(keys)}::bytea[])
    order by subject, rule_id for no key update`;
}

/** What is noted of a rule and a subject that it has never matched. */
export const unmatched = {
  told: undefined,
  value: undefined,
  valueMs: undefined,
  firstDueMs: undefined,
  notifiedMs: undefined,
  standing: false,
  muted: false,
  matchedMs: 0,
  lastMs: 0,
  triggerNames: [],
  chain: [],
};

/** Makes rows for rules and subjects that have none, in their order, so that they can be locked; nothing is noted in them. */
export async function makePlaces(
  tx: Db,
  tenantId: string,
  pairs: readonly { subject: Subject; rule: { id: string } }[],
): Promise<void> {
  const rows = new Map(
    pairs.map(({ subject, rule }) => [
      `${keyText(subject.key)}${rule.id}`,
      toRow({ ...unmatched, subject, ruleId: rule.id }),
    ]),
  );
  await tx`
    insert into rule_matches (tenant_id, subject, rule_id, entity_id, event_id, number, metric_name, metric_labels, trigger_names,
      standing, muted, chain, matched_ms, last_ms)
    select home.tenant_id, subject, rule_id, entity_id, event_id, number, metric_name, metric_labels, trigger_names,
      standing, muted, chain, matched_ms, last_ms
    from ${home(tx, tenantId)}, jsonb_populate_recordset(null::rule_matches, ${JSON.stringify([...rows.values()])}::jsonb)
    order by subject, rule_id
    on conflict do nothing`;
}

/** Forgets what is noted of occurrences that are deleted: their numbers may come again. */
export async function forgetOccurrences(
  tx: Db,
  tenantId: string,
  occurrences: readonly { eventId: Buffer; number: number }[],
): Promise<void> {
  const keys = occurrences.map((each) => occurrenceRef(each).key);
  await tx`delete from rule_matches where tenant_id = ${tenantId} and subject = any(${byteaArray(keys)}::bytea[])`;
}

/** Forgets what is noted of a rule that is deleted. */
export async function forgetRule(tx: Db, tenantId: string, ruleId: string): Promise<void> {
  await tx`delete from rule_matches where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
}

/** Subjects that one look takes. */
const portion = 1000;

/**
 * Forgets what is noted of series and entities that rules match no more and have not matched since `beforeMs`: series come and
 * go, unlike occurrences, whose rows go with them. Looks at a portion of the tenant's rows, in the order of their subjects;
 * answers the last one, undefined at the end. May be repeated.
 */
export async function forgetOldMatches(
  db: Sql,
  tenantId: string,
  after: Buffer,
  beforeMs: number,
): Promise<Buffer | undefined> {
  const isOld = db`event_id is null and not standing and not muted
    and greatest(matched_ms, last_ms, coalesce(notified_ms, 0), coalesce(value_ms, 0)) < ${BigInt(Math.floor(beforeMs))}`;
  // By the primary key.
  const rows = await db<{ subject: Buffer; old: boolean }[]>`
    select subject, ${isOld} as old from rule_matches
    where tenant_id = ${tenantId} and subject > ${after} order by subject limit ${portion}`;
  const old = rows.filter((row) => row.old).map(({ subject }) => subject);
  if (old.length > 0) {
    await db`
      with ending as materialized (
        select encode(subject, 'hex') || rule_id as key from rule_matches
        where tenant_id = ${tenantId} and subject = any(${byteaArray(old)}::bytea[]) and ${isOld}
        for update skip locked
      )
      delete from rule_matches
      where tenant_id = ${tenantId} and subject = any(${byteaArray(old)}::bytea[])
        and (select jsonb_object_agg(key, 1) from ending) ? (encode(subject, 'hex') || rule_id)`;
  }
  return rows.length < portion ? undefined : rows.at(-1)?.subject;
}

/** Rows that one look at standing matches takes. */
const standingPortion = 2000;

/**
 * What rules match, of a portion of the tenant's rows in the order of their subjects, and the last subject of the portion;
 * undefined at the end.
 */
export async function standingSubjects(
  tx: Db,
  tenantId: string,
  ruleIds: readonly string[],
  after: Buffer,
): Promise<{ subjects: Subject[]; last: Buffer | undefined }> {
  // By the primary key.
  const rows = await tx<(MatchedColumns & { rule_id: string; standing: boolean })[]>`
    select subject, rule_id, entity_id, event_id, number, metric_name, standing from rule_matches
    where tenant_id = ${tenantId} and subject > ${after} order by subject limit ${standingPortion}`;
  const last = rows.length < standingPortion ? undefined : rows.at(-1)?.subject;
  const wanted = new Set(ruleIds);
  const found = new Map<string, Subject>();
  for (const row of rows) {
    // Of the last subject further rows may lie beyond the portion.
    if ((row.standing && wanted.has(row.rule_id)) || last?.equals(row.subject)) {
      found.set(keyText(row.subject), toSubject(row));
    }
  }
  return { subjects: [...found.values()], last };
}

/** What rules keep silent about these entities, by rule_matches_muted. */
export async function mutedSubjects(tx: Db, tenantId: string, entityIds: readonly Buffer[]): Promise<Subject[]> {
  if (entityIds.length === 0) return [];
  const rows = await tx<MatchedColumns[]>`
    select distinct m.subject, m.entity_id, m.event_id, m.number, m.metric_name, m.metric_labels
    from unnest(${byteaArray(entityIds)}::bytea[]) as asked (id)
    cross join lateral (
      select * from rule_matches
      where tenant_id = ${tenantId} and muted and entity_id >= asked.id and entity_id <= asked.id
      order by entity_id offset 0
    ) as m`;
  return rows.map((row) => toSubject(row));
}

/** Puts one in its place. */
export function note(matches: StoredMatches, match: StoredMatch): void {
  const key = keyText(match.subject.key);
  const there = matches.get(key);
  if (there === undefined) matches.set(key, new Map([[match.ruleId, match]]));
  else there.set(match.ruleId, match);
}

/** Writes what is noted, each rule and subject once, in one statement; the caller holds the subjects' locks. */
export function writeMatches(tx: Db, tenantId: string, matches: readonly StoredMatch[]): PromiseLike<unknown> {
  return tx`
    insert into rule_matches (tenant_id, subject, rule_id, entity_id, event_id, number, metric_name, metric_labels, trigger_names,
      standing, muted, grouped, chain, severity, status, acknowledged, value, value_ms, matched_ms, first_due_ms, notified_ms,
      last_ms)
    select home.tenant_id, subject, rule_id, entity_id, event_id, number, metric_name, metric_labels, trigger_names,
      standing, muted, grouped, chain, severity, status, acknowledged, value, value_ms, matched_ms, first_due_ms, notified_ms,
      last_ms
    from ${home(tx, tenantId)}, jsonb_populate_recordset(null::rule_matches, ${JSON.stringify(matches.map(toRow))}::jsonb)
    order by subject, rule_id
    on conflict (tenant_id, subject, rule_id) do update set
      trigger_names = excluded.trigger_names, standing = excluded.standing, muted = excluded.muted, grouped = excluded.grouped,
      chain = excluded.chain, severity = excluded.severity, status = excluded.status,
      acknowledged = excluded.acknowledged, value = excluded.value, value_ms = excluded.value_ms,
      matched_ms = excluded.matched_ms, first_due_ms = excluded.first_due_ms, notified_ms = excluded.notified_ms,
      last_ms = excluded.last_ms`.execute();
}
