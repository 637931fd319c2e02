import type { Db } from "../../db/connect.ts";
import { newRoot } from "../../events/facts.ts";
import { lockEvents } from "../../events/lock.ts";
import { findMatches } from "../rules/find-matches.ts";
import { lockMatches, nilRule, readMatches, type StoredMatch, type StoredMatches } from "../rules/match-store.ts";
import { matchRow } from "../rules/rows.ts";
import type { LoadedRule, Matches, TenantRules } from "../rules/tenant-rules.ts";
import { inMaintenance } from "../silences/mutes.ts";
import { workMs } from "../silences/silences-in-force.ts";
import { readSubjects, type SubjectState } from "../subject/read-subjects.ts";
import { keyText, type Subject } from "../subject/subject.ts";
import type { Sight } from "./batch.ts";
import { type CurrentState, pairText } from "./current-state.ts";
import type { Deciding } from "./deciding.ts";
import { signatureOf, snapshotOf } from "./match.ts";
import { unseenSinceMs } from "./rules-consumer.ts";
import { passFrom } from "./stages.ts";

/** Holds the result of a re-evaluation. */
export interface Reevaluated {
  /** Counts the subjects that were re-evaluated, from the first on: as many as one transaction should. */
  readonly taken: number;
  /** The stored matches of the subjects, as they are now. */
  readonly matches: StoredMatches;
  /** Returns the current state of a stored match. */
  look(match: StoredMatch): CurrentState;
}

const gone: CurrentState = { triggerNames: [], now: undefined, told: {} };

/** Says which matches are re-evaluated, and why. */
interface Reevaluation {
  readonly nowMs: number;
  /** When the last of the delays, or of the windows, ended, or rules were changed. */
  readonly sinceMs: number;
  /** The rules and subjects (`pairText`) whose first notification waits for this look. */
  readonly delayEnds?: ReadonlySet<string>;
  /** Further matches that are looked at: by default only what is kept silent. */
  readonly concerns?: (match: StoredMatch) => boolean;
  /** Whether the triggers were changed: what is no occurrence is held against them again. */
  readonly judges?: boolean;
  /** True if matches of rules that group no more leave their groups. */
  readonly ungroups?: boolean;
  /** Whether the rules were disabled before: a delay that ended meanwhile was looked at by no one. */
  readonly enabled?: boolean;
}

/**
 * Re-evaluates subjects under their locks, in the caller's transaction, and stores what follows: at least one, and no further one after
 * `workMs` of matching. Takes the matches whose delay ends, that are muted, or that `concerns` names. Undefined: nothing was done, because
 * changes of occurrences from before `sinceMs` wait to be matched, which come first.
 */
export async function reevaluate(
  tx: Db,
  tenantId: string,
  asked: readonly Subject[],
  { memory, wake, readCurrentStates }: Deciding,
  {
    nowMs,
    sinceMs,
    delayEnds = new Set(),
    concerns = () => false,
    judges = false,
    ungroups = false,
    enabled = false,
  }: Reevaluation,
): Promise<Reevaluated | undefined> {
  const rules = await memory.now(tx, tenantId);
  const looked = await lookAtOccurrences(tx, tenantId, rules, asked, { sinceMs, nowMs });
  if (looked === undefined) return undefined;
  const { looks, taken, states } = looked;
  const subjects = asked.slice(0, taken);
  const root = newRoot();
  const keys = subjects.map(({ key }) => key);
  const others = subjects.filter(({ eventId }) => eventId === undefined);
  const otherKeys = others.map(({ key }) => key);
  if (others.length > 0) await lockMatches(tx, tenantId, otherKeys);
  const [matches, ofOthers] = await Promise.all([readMatches(tx, tenantId, keys), readSubjects(tx, tenantId, others)]);
  const entities = new Map(
    [...states.values(), ...ofOthers.values()].flatMap(({ entity }) => (entity ? [[keyText(entity.id), entity]] : [])),
  );
  const concerned = [...matches.values()]
    .flatMap((byRule) => [...byRule.values()])
    .filter((match) => match.standing && rules.byId.has(match.ruleId))
    .filter((match) => match.muted || delayEnds.has(pairText(match)) || concerns(match));
  const still = concerned.filter(({ subject }) => subject.eventId === undefined);
  const looksAtOthers = await readCurrentStates(tx, tenantId, still, { rules, entities, nowMs, judges });
  const look = (match: StoredMatch): CurrentState => {
    if (enabled && match.firstDueMs !== undefined && match.firstDueMs <= nowMs) return gone;
    if (match.subject.eventId !== undefined) return looks(match, matches) ?? gone;
    return looksAtOthers.get(pairText(match)) ?? standingStill(match);
  };

  function* sights(): Generator<Sight> {
    for (const match of concerned) {
      const rule = rules.byId.get(match.ruleId) as LoadedRule;
      const { subject } = match;
      const { triggerNames, now, told } = look(match);
      const muted = inMaintenance(entities.get(keyText(subject.entityId)));
      const leavesGroup = ungroups && match.grouped === true && rule.grouping === null;
      const how = { again: false, inMaintenance: muted, delayEnds: delayEnds.has(pairText(match)), leavesGroup };
      const matches = triggerNames.length > 0;
      yield { ...how, rule, subject, matches, now, triggerNames: () => triggerNames, told: () => ({ ...told, root }) };
    }
  }
  await passFrom("decide", { tx, tenantId, nowMs, wake, noted: matches, sights: sights(), silences: rules.silences });
  return { taken, matches, look };
}

/** What is no occurrence stands as its last point, or its staying away, has left it. */
const standingStill = ({ standing, triggerNames, value, valueMs }: StoredMatch): CurrentState => ({
  triggerNames: standing ? triggerNames : [],
  now: undefined,
  told: { ...(value !== undefined && { value }), ...(valueMs !== undefined && { timeMs: valueMs }) },
});

const noStates: ReadonlyMap<string, SubjectState> = new Map();

/**
 * Locks the events of occurrences among the subjects, and holds them against all rules, as many as there is time for. Undefined: others
 * come first.
 */
async function lookAtOccurrences(
  tx: Db,
  tenantId: string,
  rules: TenantRules,
  subjects: readonly Subject[],
  { sinceMs, nowMs }: Pick<Reevaluation, "sinceMs" | "nowMs">,
) {
  const eventIds = subjects.flatMap(({ eventId }) => eventId ?? []);
  if (eventIds.length === 0) return { taken: subjects.length, looks: () => undefined, states: noStates };
  await lockEvents(tx, tenantId, eventIds);
  if ((await unseenSinceMs(tx, tenantId, nowMs)) <= sinceMs) return undefined;
  const occurrences = subjects.filter(({ eventId }) => eventId !== undefined);
  const states = await readSubjects(tx, tenantId, occurrences);
  // In the order of the subjects.
  const all = [...states].flatMap(([key, { occurrence: found }]) => {
    if (found === undefined) return [];
    const row = matchRow(found.event, found.occurrence);
    return [{ key, occurrence: found.occurrence, row, matches: new Map() as Matches }];
  });
  const count = await findMatches(tx, tenantId, rules, all, { untilMs: performance.now() + workMs });
  const byKey = new Map(all.slice(0, count).map((each) => [each.key, each]));
  const next = all[count]?.key;
  const taken = next === undefined ? subjects.length : subjects.findIndex(({ key }) => keyText(key) === next);
  const looks = ({ subject, ruleId }: StoredMatch, noted: StoredMatches): CurrentState | undefined => {
    const found = byKey.get(keyText(subject.key));
    if (found === undefined) return undefined;
    const rule = rules.byId.get(ruleId);
    const chain = noted.get(keyText(subject.key))?.get(nilRule)?.chain ?? [];
    return {
      triggerNames: (rule && found.matches.get(rule)) ?? [],
      now: signatureOf(found.occurrence),
      told: snapshotOf(found.occurrence, chain),
    };
  };
  return { looks, taken, states };
}
