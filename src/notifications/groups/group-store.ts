import { byteaArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import type { Pace } from "../../event-loop.ts";
import type { LabelView } from "../../events/labels.ts";
import { newestMs } from "../../jobs/queue.ts";
import { type Grouping, groupLabels } from "../rules/grouping.ts";
import type { LoadedRule } from "../rules/tenant-rules.ts";
import { firstId } from "../subject/delivery-id.ts";
import { groupsKind } from "../subject/group-jobs.ts";
import type { GroupSnapshot } from "../subject/notification.ts";
import { groupSubject, type Subject } from "../subject/subject.ts";
import type { GroupState } from "./flush.ts";

/** What has failed as often keeps no group waiting. */
const failuresMax = 3;

/** A group of a rule, as it is stored. */
export interface StoredGroup extends GroupState {
  readonly key: Buffer;
  readonly labels: Readonly<Record<string, string>>;
  readonly openedMs: number | undefined;
  readonly lastMs: number;
}

/** A member of a group, as it is stored. */
export interface StoredMember {
  readonly groupKey: Buffer;
  readonly member: Buffer;
  readonly subject: Buffer;
  readonly joinsMs: number;
  readonly sentTo: readonly string[];
  readonly againAt: readonly string[];
}

/** Names a member: an alert by its event, which its labels name; anything else by its event or series. */
export const groupMemberKey = ({ key, eventId }: Pick<Subject, "key" | "eventId">) => eventId ?? key;

/** A message of a group, with all of its members in their order. */
export interface GroupMessage {
  readonly id: string;
  readonly told: GroupSnapshot;
  readonly members: readonly { readonly subject: Subject; readonly resolved: boolean }[];
}

const hex = (bytes: Buffer) => `\\x${bytes.toString("hex")}`;
const portion = 1000;
/** What one statement stores of messages, unless one is longer. */
const messagesCharsMax = 4 * 1024 * 1024;
/** Messages that one look forgets: each may have as many members as a rule matches. */
const oldMax = 20;

const groupColumns = (db: Db) => db`
  group_key as key, labels, flushed_ms::float8 as "flushedMs", due_ms::float8 as "dueMs", repeat_ms::float8 as "repeatMs",
  opened_ms::float8 as "openedMs", last_ms::float8 as "lastMs", open_at as "openAt", held`;

type Nulls = { [K in keyof StoredGroup]: StoredGroup[K] | null };
const toGroup = (row: Nulls) =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? undefined])) as unknown as StoredGroup;

/**
 * Has this transaction alone work on the groups of a rule until it ends. Returns by what its open groups were made; undefined: it has
 * none, and is not grouped.
 */
export async function lockGroups(
  tx: Db,
  tenantId: string,
  ruleId: string,
  grouping: Grouping | null,
): Promise<Grouping | undefined> {
  if (grouping !== null)
    await tx`
      insert into grouped_rules (tenant_id, rule_id, grouping)
      select home.tenant_id, ${ruleId}::uuid, ${JSON.stringify(grouping)}::jsonb from ${home(tx, tenantId)}
      on conflict do nothing`;
  const [row] = await tx<{ grouping: Grouping }[]>`
    select grouping from grouped_rules where tenant_id = ${tenantId} and rule_id = ${ruleId} for update`;
  return row?.grouping;
}

/** Stores by what the groups of a rule are made from now on; null: it has none any more. */
export async function keepGrouping(tx: Db, tenantId: string, ruleId: string, grouping: Grouping | null): Promise<void> {
  if (grouping === null) await tx`delete from grouped_rules where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
  else
    await tx`
      update grouped_rules set grouping = ${JSON.stringify(grouping)}::jsonb
      where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
}

/** Forgets the groups of a rule that is deleted. */
export async function forgetGroups(tx: Db, tenantId: string, ruleId: string): Promise<void> {
  await tx`delete from grouped_rules where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
  await tx`delete from alert_groups where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
  await tx`delete from group_members where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
}

/** Reads groups by their keys. */
export async function readGroups(
  db: Db,
  tenantId: string,
  ruleId: string,
  keys: readonly Buffer[],
): Promise<StoredGroup[]> {
  if (keys.length === 0) return [];
  const rows = await db<Nulls[]>`
    select ${groupColumns(db)} from alert_groups
    where tenant_id = ${tenantId} and rule_id = ${ruleId} and group_key = any(${byteaArray(keys)}::bytea[])`;
  return rows.map(toGroup);
}

/** Counts the groups of a rule. */
export async function countGroups(tx: Db, tenantId: string, ruleId: string): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::int4 as count from alert_groups where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
  return row.count;
}

/** Reads the groups of a rule that are due, the first due first, without a time all, each with the number of its members. */
export async function dueGroups(
  tx: Db,
  tenantId: string,
  ruleId: string,
  untilMs: number | undefined,
  limit: number,
): Promise<(StoredGroup & { count: number })[]> {
  const rows = await tx<(Nulls & { count: number })[]>`
    select ${groupColumns(tx)}, (
        select count(*)::int4 from group_members m
        where m.tenant_id = ${tenantId} and m.rule_id = ${ruleId} and m.group_key = g.group_key) as count
    from alert_groups g
    where g.tenant_id = ${tenantId} and g.rule_id = ${ruleId} 
      and ${untilMs === undefined ? tx`true` : tx`g.due_ms <= ${BigInt(untilMs)}`}
    order by g.due_ms, g.group_key limit ${limit}`;
  return rows.map((row) => ({ ...toGroup(row), count: row.count }));
}

/** Tells when the first group of a rule is due; undefined: none is. */
export async function nextDueMs(tx: Db, tenantId: string, ruleId: string): Promise<number | undefined> {
  const [row] = await tx<[{ dueMs: number | null }]>`
    select min(due_ms)::float8 as "dueMs" from alert_groups where tenant_id = ${tenantId} and rule_id = ${ruleId}`;
  return row.dueMs ?? undefined;
}

/**
 * Tells when the newest job was made that has yet to take in what began or ended for a rule, ms; undefined: there is none but these.
 * One that fails again and again does not count.
 */
export async function takingSinceMs(
  tx: Db,
  tenantId: string,
  ruleId: string,
  but: readonly string[],
  untilMs: number | undefined,
): Promise<number | undefined> {
  const of = tx`payload ->> 'ruleId' = ${ruleId} and payload -> 'keys' <> '[]' and failures < ${failuresMax}`;
  return await newestMs(tx, { tenantId, kind: groupsKind }, { of, but, untilMs });
}

const memberColumns = (db: Db) =>
  db`group_key as "groupKey", member, subject, joins_ms::float8 as "joinsMs", sent_to as "sentTo", again_at as "againAt"`;

/** Reads the members of groups. By the primary key. */
export async function membersOf(
  db: Db,
  tenantId: string,
  ruleId: string,
  groupKeys: readonly Buffer[],
): Promise<StoredMember[]> {
  return await db<StoredMember[]>`
    select ${memberColumns(db)} from group_members
    where tenant_id = ${tenantId} and rule_id = ${ruleId} and group_key = any(${byteaArray(groupKeys)}::bytea[])
    order by group_key, member`.execute();
}

/** Tells whether a member is in no group of its labels. One of the group of those beyond the bound stays there. */
export function isElsewhere(
  { id, grouping }: Pick<LoadedRule, "id" | "grouping">,
  labels: LabelView,
  own: readonly Pick<StoredMember, "groupKey">[],
): boolean {
  if (grouping === null) return false;
  const key = groupSubject(id, groupLabels(grouping, labels));
  const beyond = groupSubject(id, undefined);
  return !own.some(({ groupKey }) => groupKey.equals(key) || groupKey.equals(beyond));
}

/** Reads in which groups of a rule these are members. By group_members_by_member. */
export async function membershipsOf(
  db: Db,
  tenantId: string,
  ruleId: string,
  members: readonly Buffer[],
): Promise<StoredMember[]> {
  if (members.length === 0) return [];
  return await db<StoredMember[]>`
    select ${memberColumns(db)} from group_members
    where tenant_id = ${tenantId} and rule_id = ${ruleId} and member = any(${byteaArray(members)}::bytea[])
    order by member, group_key`.execute();
}

/** Stores groups, new ones and those that are there. */
export async function writeGroups(tx: Db, tenantId: string, ruleId: string, groups: readonly StoredGroup[]) {
  if (groups.length === 0) return;
  const rows = groups.map((group) => ({
    group_key: hex(group.key),
    labels: group.labels,
    flushed_ms: group.flushedMs ?? null,
    due_ms: group.dueMs ?? null,
    repeat_ms: group.repeatMs ?? null,
    opened_ms: group.openedMs ?? null,
    last_ms: group.lastMs,
    open_at: group.openAt,
    held: group.held,
  }));
  await tx`
    insert into alert_groups (tenant_id, rule_id, group_key, labels, flushed_ms, due_ms, repeat_ms, opened_ms, last_ms, open_at, held)
    select home.tenant_id, ${ruleId}::uuid, group_key, labels, flushed_ms, due_ms, repeat_ms, opened_ms, last_ms, open_at, held
    from ${home(tx, tenantId)}, json_populate_recordset(null::alert_groups, ${JSON.stringify(rows)}::json)
    on conflict (tenant_id, rule_id, group_key) do update set flushed_ms = excluded.flushed_ms, due_ms = excluded.due_ms,
      repeat_ms = excluded.repeat_ms, opened_ms = excluded.opened_ms, last_ms = excluded.last_ms, open_at = excluded.open_at,
      held = excluded.held`;
}

/** Removes groups that are over. */
export async function removeGroups(tx: Db, tenantId: string, ruleId: string, keys: readonly Buffer[]): Promise<void> {
  if (keys.length === 0) return;
  await tx`
    delete from alert_groups
    where tenant_id = ${tenantId} and rule_id = ${ruleId} and group_key = any(${byteaArray(keys)}::bytea[])`;
  await tx`
    delete from group_members
    where tenant_id = ${tenantId} and rule_id = ${ruleId} and group_key = any(${byteaArray(keys)}::bytea[])`;
}

/** Stores members, new ones and those that are there: who was in a message joins at no other time by beginning again. */
export async function writeMembers(tx: Db, tenantId: string, ruleId: string, members: readonly StoredMember[]) {
  for (let from = 0; from < members.length; from += portion) {
    const rows = members.slice(from, from + portion).map(({ groupKey, member, subject, joinsMs, sentTo, againAt }) => ({
      group_key: hex(groupKey),
      member: hex(member),
      subject: hex(subject),
      joins_ms: joinsMs,
      sent_to: sentTo,
      again_at: againAt,
    }));
    await tx`
      insert into group_members as m (tenant_id, rule_id, group_key, member, subject, joins_ms, sent_to, again_at)
      select home.tenant_id, ${ruleId}::uuid, group_key, member, subject, joins_ms, sent_to, again_at
      from ${home(tx, tenantId)}, jsonb_populate_recordset(null::group_members, ${JSON.stringify(rows)}::jsonb)
      on conflict (tenant_id, rule_id, group_key, member) do update set subject = excluded.subject,
        joins_ms = excluded.joins_ms, sent_to = excluded.sent_to, again_at = excluded.again_at`;
  }
}

/** Removes members whose end a flush has seen. */
export async function removeMembers(tx: Db, tenantId: string, ruleId: string, members: readonly StoredMember[]) {
  if (members.length === 0) return;
  await tx`
    delete from group_members m
    using unnest(
      ${byteaArray(members.map(({ groupKey }) => groupKey))}::bytea[], ${byteaArray(members.map(({ member }) => member))}::bytea[]
    ) as gone (group_key, member)
    where m.tenant_id = ${tenantId} and m.rule_id = ${ruleId} and m.group_key = gone.group_key and m.member = gone.member`;
}

/** Stores what messages say, and of whom, in slices: a message may have 1 MiB, and a run makes some hundred of them. */
export async function keepMessages(
  tx: Db,
  tenantId: string,
  messages: readonly GroupMessage[],
  pace: Pace,
): Promise<void> {
  let rows: string[] = [];
  let size = 0;
  const write = async () => {
    await tx`
      insert into group_messages (tenant_id, id, told)
      select home.tenant_id, id, told
      from ${home(tx, tenantId)}, json_populate_recordset(null::group_messages, ${`[${rows.join()}]`}::json)`;
    [rows, size] = [[], 0];
  };
  for (const { id, told } of messages) {
    await pace();
    const row = JSON.stringify({ id, told });
    if (rows.length > 0 && size + row.length > messagesCharsMax) await write();
    rows.push(row);
    size += row.length;
  }
  if (rows.length > 0) await write();
  for (const { id, members } of messages)
    for (let from = 0; from < members.length; from += portion) {
      await pace();
      await keepMembers(tx, tenantId, id, from, members.slice(from, from + portion));
    }
}

async function keepMembers(
  tx: Db,
  tenantId: string,
  id: string,
  firstPlace: number,
  members: GroupMessage["members"],
): Promise<void> {
  const rows = members.map(({ subject, resolved }, i) => ({
    message_id: id,
    place: firstPlace + i,
    subject: hex(subject.key),
    event_id: subject.eventId === undefined ? null : hex(subject.eventId),
    number: subject.number ?? null,
    entity_id: hex(subject.entityId),
    resolved,
  }));
  await tx`
    insert into group_message_members (tenant_id, message_id, place, subject, event_id, number, entity_id, resolved)
    select home.tenant_id, message_id, place, subject, event_id, number, entity_id, resolved
    from ${home(tx, tenantId)},
      jsonb_populate_recordset(null::group_message_members, ${JSON.stringify(rows)}::jsonb)`;
}

/**
 * Reads those that a message reports as firing and whose end no flush of its group has seen, after a place: an alert that fires anew is its
 * newest occurrence. Both by their keys.
 */
export async function stillFiring(
  db: Db,
  tenantId: string,
  { id, ruleId, groupKey }: { id: string; ruleId: string; groupKey: Buffer },
  after: number,
  limit: number,
): Promise<{ place: number; subject: Buffer }[]> {
  return await db<{ place: number; subject: Buffer }[]>`
    select t.place, m.subject from group_message_members t
      cross join lateral (
        select subject from group_members
        where tenant_id = ${tenantId} and rule_id = ${ruleId} and group_key = ${groupKey}
          and member = coalesce(t.event_id, t.subject)
        limit 1) as m
    where t.tenant_id = ${tenantId} and t.message_id = ${id} and t.place > ${after} and not t.resolved
    order by t.place limit ${limit}`;
}

/**
 * Forgets messages that were decided before `beforeMs`, a portion of them with their members, but what a delivery names that waits: a
 * silence may hold it for longer. Returns whether there may be more. May be repeated.
 */
export async function forgetOldMessages(sql: Sql, tenantId: string, beforeMs: number): Promise<boolean> {
  const old = await sql<{ id: string }[]>`
    select id from group_messages
    where tenant_id = ${tenantId} and id < ${firstId(beforeMs)}::uuid and id <> all(array(
      select (told -> 'group' ->> 'message')::uuid from due_deliveries where tenant_id = ${tenantId} and told ? 'group'))
    order by id limit ${oldMax}`;
  if (old.length === 0) return false;
  const ids = uuidArray(old.map(({ id }) => id));
  await sql`delete from group_message_members where tenant_id = ${tenantId} and message_id = any(${ids}::uuid[])`;
  await sql`delete from group_messages where tenant_id = ${tenantId} and id = any(${ids}::uuid[])`;
  return old.length === oldMax;
}
