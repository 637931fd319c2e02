import type { Fragment } from "postgres";
import { textArray, uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import type { Pace } from "../../event-loop.ts";
import { changedBehindMs } from "../../events/consumers/cursors.ts";
import { asideOf } from "../../events/consumers/set-aside.ts";
import type { LabelView } from "../../events/labels.ts";
import { parseOccurrenceId } from "../../events/occurrence-id.ts";
import { rulesName } from "../deciding/deciding.ts";
import { isElsewhere } from "../groups/group-store.ts";
import { nilRule, readMatches, type StoredMatch } from "../rules/match-store.ts";
import { type MatchRow, matchRow, rowLabels } from "../rules/rows.ts";
import { readStoredRules, type StoredRule, type StoredTrigger, withTriggers } from "../rules/stored-rules.ts";
import { type LoadedRule, loadedRule } from "../rules/tenant-rules.ts";
import { lastOf } from "../silences/mutes.ts";
import { readSilences, type StoredSilence, stateOf } from "../silences/silences.ts";
import { type LabelledState, readLabels, subjectLabelsKey } from "../subject/labels.ts";
import type { MutedBy } from "../subject/notice.ts";
import { readOccurrence } from "../subject/read-subjects.ts";
import { keyText, occurrenceRef } from "../subject/subject.ts";
import { type DeliveryRow, hasMember, readDeliveries } from "./delivery-rows.ts";

/** A rule as decisions see it, with its triggers as they are stored, its own condition among them. */
export interface ExplainedRule extends LoadedRule, Pick<StoredRule, "enabled"> {
  readonly triggers: readonly StoredTrigger[];
}

/** Reads rules to be explained, in two statements. @param which the condition, in which their row is `r` */
export async function readExplainedRules(db: Db, tenantId: string, which: Fragment): Promise<ExplainedRule[]> {
  const found = await withTriggers(db, tenantId, await readStoredRules(db, tenantId, which));
  return found.map(({ triggers, ...rule }) => ({
    ...loadedRule({ ...rule, repeatIntervalSec: String(rule.repeatIntervalSec) }),
    enabled: rule.enabled,
    triggers,
  }));
}

/** What is asked about, and what is stored of it: the same for all rules. */
export interface About {
  readonly key: Buffer;
  /** As triggers see it; undefined for what is no occurrence. */
  readonly row: MatchRow | undefined;
  /** What is noted of it, by the ids of rules. */
  readonly noted: ReadonlyMap<string, StoredMatch>;
  /** The rules that led to it. */
  readonly chain: readonly string[];
  /** Since when a change of it waits to be looked at. */
  readonly unseenMs: number | undefined;
  /** Why looking at a change of it has failed, and when that is tried again. */
  readonly aside: Awaited<ReturnType<typeof asideOf>>;
}

/** A group of a rule that something is a member of. */
interface Membership {
  readonly ruleId: string;
  readonly groupKey: Buffer;
  /** The destinations that were sent a message in which it fires. */
  readonly sentTo: readonly string[];
  readonly joinsMs: number;
  /** When the group is flushed next; null: nothing is due. */
  readonly dueMs: number | null;
}

/** What is asked about, and what a rule has to do with it. */
export interface Case extends About {
  readonly rule: ExplainedRule;
  readonly match: StoredMatch | undefined;
  /** The groups of the rule that it is a member of. */
  readonly memberships: readonly Membership[];
  /** The newest first. */
  readonly deliveries: readonly DeliveryRow[];
}

/** How many deliveries about an occurrence are read, of all rules together. */
const ownDeliveriesMax = 500;

/** Of deliveries, the newest first: the first one to each destination. */
export function newestOfEach(deliveries: readonly DeliveryRow[]): DeliveryRow[] {
  const found = new Map<string, DeliveryRow>();
  for (const each of deliveries) if (!found.has(each.destinationName)) found.set(each.destinationName, each);
  return [...found.values()];
}

/** The condition of a delivery that is about this, alone or, where one of these rules groups it, as a member. */
export function isTold(db: Db, tenantId: string, { key, noted }: About, rules: readonly ExplainedRule[]): Fragment {
  const isGrouped = rules.some(({ id }) => noted.get(id)?.grouped);
  return isGrouped ? db`(subject = ${key} or ${hasMember(db, tenantId, db`subject = ${key}`)})` : db`subject = ${key}`;
}

/** Reads, by the ids of rules, in which of their groups this is a member. By group_members_by_member. */
export async function readGroupMemberships(
  db: Db,
  tenantId: string,
  { noted }: About,
  rules: readonly ExplainedRule[],
) {
  const matches = rules.flatMap(({ id }) => noted.get(id) ?? []).filter(({ grouped }) => grouped);
  const [first] = matches;
  if (first === undefined) return new Map<string, Membership[]>();
  const { eventId, key } = first.subject;
  const rows = await db<Membership[]>`
    select m.rule_id as "ruleId", m.group_key as "groupKey", m.sent_to as "sentTo", m.joins_ms::float8 as "joinsMs", g.due_ms::float8 as "dueMs"
    from group_members m
      left join alert_groups g
        on g.tenant_id = ${tenantId} and g.rule_id = m.rule_id and g.group_key = m.group_key
    where m.tenant_id = ${tenantId} and m.rule_id = any(${uuidArray(matches.map(({ ruleId }) => ruleId))}::uuid[])
      and m.member = ${eventId ?? key}
    order by m.rule_id, m.group_key`;
  return Map.groupBy(rows, ({ ruleId }) => ruleId);
}

/** Reads the newest deliveries of these rules about an occurrence. None is older than the first of their matches. */
export async function readOwn(db: Db, tenantId: string, about: About, rules: readonly ExplainedRule[]) {
  if (rules.length === 0) return [];
  const names = [...new Set(rules.flatMap(({ destinationNames }) => destinationNames))];
  const ids = textArray(rules.map(({ id }) => id));
  const sinceMs = Math.min(...rules.map(({ id }) => about.noted.get(id)?.matchedMs ?? Infinity));
  const told = isTold(db, tenantId, about, rules);
  return await readDeliveries(db, {
    waiting: db`tenant_id = ${tenantId} and destination_name = any(${textArray(names)}::text[])
      and ${told} and created_ms >= 0 and rule_id = any(${ids}::text[]::uuid[])`,
    done: db`tenant_id = ${tenantId} and created_ms >= ${BigInt(sinceMs)} and ${told}
      and rule_id = any(${ids}::text[]::uuid[])`,
    limit: ownDeliveriesMax,
  });
}

/** Reads what is stored of an occurrence, or of what else deliveries are about, by its text; undefined: there is no such occurrence. */
export async function readAbout(db: Db, tenantId: string, text: string): Promise<About | undefined> {
  const occurrence = parseOccurrenceId(text);
  const found = await readOccurrence(db, tenantId, text);
  if (occurrence !== undefined && found === undefined) return undefined;
  const key = occurrence ? occurrenceRef(occurrence).key : Buffer.from(text, "base64url");
  // Before what is noted: what was looked at by then is noted.
  const [unseenMs, aside] = await Promise.all([
    occurrence && changedBehindMs(db, tenantId, rulesName, occurrence),
    occurrence && asideOf(db, tenantId, rulesName, occurrence),
  ]);
  const matches = await readMatches(db, tenantId, [key]);
  const noted: ReadonlyMap<string, StoredMatch> = matches.get(keyText(key)) ?? new Map();
  const chain = noted.get(nilRule)?.chain ?? [];
  return { key, row: found && matchRow(found.event, found.occurrence), noted, chain, unseenMs, aside };
}

/** A destination that holds back what waits for it. */
interface HeldDestination {
  name: string;
  disabledReason: string;
  openUntilMs: number;
}

/** Reads which destinations of deliveries that wait get nothing now, by name. By the primary keys. */
export async function heldDestinations(db: Db, tenantId: string, deliveries: readonly DeliveryRow[], nowMs: number) {
  const waiting = deliveries.filter(({ status }) => status === "PENDING");
  const names = [...new Set(waiting.map(({ destinationName }) => destinationName))];
  if (names.length === 0) return new Map<string, HeldDestination>();
  const rows = await db<HeldDestination[]>`
    select d.name, d.disabled_reason as "disabledReason", coalesce(s.open_until_ms, 0)::float8 as "openUntilMs"
    from destinations d
      left join lateral (
        select open_until_ms from destination_states
        where tenant_id = ${tenantId} and destination_name = d.name and opened > 0 limit 1) as s on true
    where d.tenant_id = ${tenantId} and d.name = any(${textArray(names)}::text[])`;
  const held = rows.filter(({ disabledReason, openUntilMs }) => disabledReason !== "" || openUntilMs > nowMs);
  return new Map(held.map((row) => [row.name, row]));
}

/** Reads the current state of what is asked about, of whose row the entity was read; undefined: it is not known, or deleted. */
export async function readState(
  db: Db,
  tenantId: string,
  { row, noted }: About,
  rules: readonly ExplainedRule[],
): Promise<LabelledState | undefined> {
  if (row !== undefined) return { labels: rowLabels(row), entity: row.entity };
  const match = rules.flatMap(({ id }) => noted.get(id) ?? [])[0] ?? [...noted.values()][0];
  if (match === undefined) return undefined;
  return (await readLabels(db, tenantId, [match])).get(subjectLabelsKey(match));
}

/** Tells whether something stands that its group has not taken in yet: it has just begun, or its labels have changed. */
export function joinsGroup({ rule, match, memberships }: Case, labels: LabelView | undefined): boolean {
  if (!match?.standing || !match.grouped) return false;
  if (rule.grouping === null || labels === undefined) return memberships.length === 0;
  return isElsewhere(rule, labels, memberships);
}

/**
 * Reads the silences that hold deliveries. Of a rule that matches, the answer returns the one that ends last of those that hold it back from
 * all of its destinations or some.
 */
export async function silencesOver(
  db: Db,
  tenantId: string,
  mutedBy: MutedBy,
  { rules, deliveries }: { readonly rules: readonly ExplainedRule[]; readonly deliveries: readonly DeliveryRow[] },
  { nowMs, pace }: { readonly nowMs: number; readonly pace: Pace },
): Promise<(known: Case) => StoredSilence | undefined> {
  const last = new Map<string, string | undefined>();
  for (const rule of rules) {
    await pace();
    const mutes = rule.destinationNames.flatMap((name) => mutedBy(rule, name));
    last.set(rule.id, lastOf(mutes.filter(({ by }) => by === "silence"))?.id);
  }
  const ids = [...last.values(), ...deliveries.map(({ silenceId }) => silenceId)].flatMap((id) => id ?? []);
  const rows = await readSilences(db, tenantId, [...new Set(ids)]);
  const active = rows.filter((row) => stateOf(row, nowMs) === "ACTIVE");
  return ({ rule, deliveries: own }) => {
    const id = last.get(rule.id) ?? own.find(({ silenceId }) => silenceId !== null)?.silenceId;
    return active.find((each) => each.id === id);
  };
}
