import type { Db } from "../db/connect.ts";
import { readEntities } from "../entities/read.ts";
import { lockEvents } from "../events/lock.ts";
import { keyText as occurrenceText, readOccurrences } from "../events/occurrences.ts";
import { signatureOf, toldOf } from "./decide-changes.ts";
import { keyText, lockMatches, nilRule, readMatches, type StoredMatch, type StoredMatches } from "./matches.ts";
import { effort } from "./matching/effort.ts";
import { findMatches } from "./matching/find-matches.ts";
import { matchRow } from "./matching/rows.ts";
import type { Matches, TenantRules } from "./matching/tenant-rules.ts";
import type { Deciding } from "./on-changes.ts";
import { newRoot } from "./rule-changes.ts";
import { type Sight, settle } from "./settle.ts";
import type { Subject } from "./subjects.ts";
import { oldestUnmatchedMs } from "./unmatched/unmatched-changes.ts";

/** How a rule sees a subject now. */
type Look = Pick<Sight, "triggerNames" | "now" | "told">;

/** What looking again has found. */
export interface Reconsidered {
  /** What is noted of the subjects now. */
  readonly matches: StoredMatches;
  /** How a rule sees what is noted. */
  look(match: StoredMatch): Look;
}

const gone: Look = { triggerNames: [], now: undefined, told: {} };

/** A rule and a subject, as one text. */
export const pairText = ({ subject, ruleId }: { subject: { key: Buffer }; ruleId: string }) =>
  `${keyText(subject.key)}${ruleId}`;

/**
 * Looks at subjects once more, as they and their entities are now, under their locks in the caller's transaction, for the
 * rules whose delay of them ends or that keep silent about them, and stores what follows. Undefined: changes of occurrences
 * from before `sinceMs` wait to be matched, which come first; nothing was looked at.
 * @param sinceMs when the last of the delays, or of the windows, ended
 * @param delayEnds the rules and subjects (`pairText`) whose first notification waits for this look
 */
export async function reconsider(
  tx: Db,
  tenantId: string,
  subjects: readonly Subject[],
  { memory, wake }: Deciding,
  { nowMs, sinceMs, delayEnds = new Set() }: { nowMs: number; sinceMs: number; delayEnds?: ReadonlySet<string> },
): Promise<Reconsidered | undefined> {
  const rules = await memory.now(tx, tenantId);
  const looks = await lookAtOccurrences(tx, tenantId, rules, subjects, sinceMs);
  if (looks === undefined) return undefined;
  const root = newRoot();
  const others = subjects.flatMap(({ eventId, key }) => (eventId === undefined ? [key] : []));
  if (others.length > 0) await lockMatches(tx, tenantId, others);
  const entityIds = new Map(subjects.map(({ entityId }) => [keyText(entityId), entityId]));
  const [matches, entities] = await Promise.all([
    readMatches(
      tx,
      tenantId,
      subjects.map(({ key }) => key),
    ),
    readEntities(tx, tenantId, [...entityIds.values()]),
  ]);
  const inWindows = new Set(
    entities.flatMap((entity) => (entity.window_production_state === null ? [] : [keyText(entity.id)])),
  );
  const look = (match: StoredMatch): Look =>
    match.subject.eventId === undefined ? standingStill(match) : (looks(match, matches) ?? gone);

  function* sights(): Generator<Sight> {
    for (const match of [...matches.values()].flatMap((byRule) => [...byRule.values()])) {
      const rule = match.standing ? rules.byId.get(match.ruleId) : undefined;
      if (rule === undefined || !(match.muted || delayEnds.has(pairText(match)))) continue;
      const { subject } = match;
      const seen = look(match);
      const inMaintenance = inWindows.has(keyText(subject.entityId));
      const how = { again: false, inMaintenance, delayEnds: delayEnds.has(pairText(match)) };
      const told = { ...seen.told, root };
      yield { ...seen, ...how, told, rule, subject, matches: seen.triggerNames.length > 0 };
    }
  }
  await settle(tx, tenantId, sights(), matches, nowMs, wake);
  return { matches, look };
}

/** What is no occurrence stands as its last point, or its staying away, has left it. */
const standingStill = ({ standing, triggerNames, value, valueMs }: StoredMatch): Look => ({
  triggerNames: standing ? triggerNames : [],
  now: undefined,
  told: { ...(value !== undefined && { value }), ...(valueMs !== undefined && { timeMs: valueMs }) },
});

/** Locks the events of occurrences among the subjects, and holds them against all rules. Undefined: others come first. */
async function lookAtOccurrences(
  tx: Db,
  tenantId: string,
  rules: TenantRules,
  subjects: readonly Subject[],
  sinceMs: number,
) {
  const keys = subjects.flatMap(({ eventId, number }) =>
    eventId === undefined || number === undefined ? [] : [{ eventId, number }],
  );
  if (keys.length === 0) return () => undefined;
  await lockEvents(
    tx,
    tenantId,
    keys.map(({ eventId }) => eventId),
  );
  if ((await oldestUnmatchedMs(tx, tenantId)) <= sinceMs) return undefined;
  const occurrences = await readOccurrences(tx, tenantId, keys);
  const all = [...occurrences].map(([key, { event, occurrence }]) => {
    const row = matchRow(event, occurrence);
    return { key, occurrence, row, matches: new Map() as Matches };
  });
  await findMatches(tx, tenantId, rules, all, effort(tenantId));
  const byKey = new Map(all.map((each) => [each.key, each]));
  return ({ subject, ruleId }: StoredMatch, noted: StoredMatches): Look | undefined => {
    const { eventId, number } = subject;
    const found = eventId && number && byKey.get(occurrenceText({ eventId, number }));
    if (!found) return undefined;
    const rule = rules.byId.get(ruleId);
    const chain = noted.get(keyText(subject.key))?.get(nilRule)?.chain ?? [];
    return {
      triggerNames: (rule && found.matches.get(rule)) ?? [],
      now: signatureOf(found.occurrence),
      told: toldOf(found.occurrence, chain),
    };
  };
}
