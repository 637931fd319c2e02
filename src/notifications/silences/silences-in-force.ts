import { LRUCache } from "lru-cache";
import { allMatch, type LabelMatcher, labelMatcher, type MatcherParts } from "../../clause/label-matcher.ts";
import type { Pace } from "../../event-loop.ts";
import { type LabelView, labelOf } from "../../events/labels.ts";

/** How long one transaction, or one look at what waits to be sent, compares, ms: triggers with rows, and silences with labels. */
export const workMs = 200;

/** A silence as it is read for rules. Times are ms since the epoch. */
export interface SilenceRow {
  id: string;
  matchers: MatcherParts[];
  startsMs: number;
  /** Null: until what it matched has ended. */
  endsMs: number | null;
  ruleNames: string[];
  destinationNames: string[];
}

/** A silence that may hold something, now or later. */
export interface LoadedSilence {
  readonly id: string;
  readonly matchers: readonly LabelMatcher[];
  readonly startsMs: number;
  /** Infinity: until what it matched has ended. */
  readonly endsMs: number;
  /** Empty: all. */
  readonly ruleNames: ReadonlySet<string>;
  readonly destinationNames: ReadonlySet<string>;
}

/** A silence's time, and what of it a notification of a rule to a destination is held against. */
export const isActive = ({ startsMs, endsMs }: Pick<LoadedSilence, "startsMs" | "endsMs">, nowMs: number) =>
  startsMs <= nowMs && nowMs < endsMs;

export const hasScope = ({ ruleNames, destinationNames }: Pick<LoadedSilence, "ruleNames" | "destinationNames">) =>
  ruleNames.size > 0 || destinationNames.size > 0;

/** Tells whether a rule's notifications to a destination are in the scope of a silence. */
export const covers = (
  { ruleNames, destinationNames }: Pick<LoadedSilence, "ruleNames" | "destinationNames">,
  rule: string,
  destination: string,
) =>
  (ruleNames.size === 0 || ruleNames.has(rule)) && (destinationNames.size === 0 || destinationNames.has(destination));

/** The silences of a tenant that have not ended. */
export interface Silences {
  readonly byId: ReadonlyMap<string, LoadedSilence>;
  /** About how many characters they hold: of matchers, and of what may be remembered. */
  readonly weight: number;
  /** Tells whether any is active. */
  any(nowMs: number): boolean;
  /** Finds those that are active and whose matchers all hold, in slices. */
  matching(labels: LabelView, nowMs: number, pace: Pace): Promise<LoadedSilence[]>;
}

export const loadedSilence = ({
  id,
  matchers,
  startsMs,
  endsMs,
  ruleNames,
  destinationNames,
}: SilenceRow): LoadedSilence => ({
  id,
  matchers: matchers.map(labelMatcher),
  startsMs,
  endsMs: endsMs ?? Infinity,
  ruleNames: new Set(ruleNames),
  destinationNames: new Set(destinationNames),
});

/** The values of which a label has one if a matcher holds; undefined: it may have any other. */
function valuesOf({ operator, value, expression }: LabelMatcher): readonly string[] | undefined {
  if (operator === "=") return value === "" ? undefined : [value];
  return operator === "=~" ? expression?.values : undefined;
}

/** How many characters of values, and silences by them, are remembered of what expressions were compared with. */
const rememberedMax = 1 << 18;
const valueCharsMax = 255;

/**
 * Finds silences by an equality that each needs; those that need none by one of their matchers, whose answers are remembered by value. One that
 * is undecided does not hold.
 */
export function silencesInForce(byId: ReadonlyMap<string, LoadedSilence>): Silences {
  const byName = new Map<string, Map<string, LoadedSilence[]>>();
  const others = new Map<string, { silence: LoadedSilence; matcher: LabelMatcher }[]>();
  const passed = new LRUCache<string, LoadedSilence[]>({
    maxSize: rememberedMax,
    sizeCalculation: (found, key) => found.length + key.length,
  });
  let weight = 0;
  for (const silence of byId.values()) {
    for (const { name, value } of silence.matchers) weight += name.length + value.length;
    for (const name of [...silence.ruleNames, ...silence.destinationNames]) weight += name.length;
    const needed = silence.matchers.find((matcher) => valuesOf(matcher) !== undefined);
    if (needed === undefined) {
      const matcher = silence.matchers.find(({ operator }) => operator === "=~") ?? silence.matchers[0];
      if (matcher === undefined) continue;
      const some = others.get(matcher.name);
      if (some === undefined) others.set(matcher.name, [{ silence, matcher }]);
      else some.push({ silence, matcher });
      continue;
    }
    const byValue = byName.get(needed.name) ?? new Map<string, LoadedSilence[]>();
    byName.set(needed.name, byValue);
    for (const value of new Set(valuesOf(needed))) {
      const some = byValue.get(value);
      if (some === undefined) byValue.set(value, [silence]);
      else some.push(silence);
    }
  }

  if (others.size > 0) weight += rememberedMax;

  /** Finds those of `others` whose matcher of this name takes a value. */
  async function taking(name: string, value: string, pace: Pace): Promise<LoadedSilence[]> {
    const key = `${name}\0${value}`;
    const known = passed.get(key);
    if (known !== undefined) return known;
    const found: LoadedSilence[] = [];
    for (const { silence, matcher } of others.get(name) ?? []) {
      // Nothing is awaited but a turn: a thousand silences may be asked.
      const turn = pace();
      if (turn !== undefined) await turn;
      const answer = matcher.matches(value, pace);
      // What is undecided is decided with the silence's other matchers.
      if ((answer instanceof Promise ? await answer : answer) !== false) found.push(silence);
    }
    if (value.length <= valueCharsMax) passed.set(key, found);
    return found;
  }

  return {
    byId,
    weight,
    any: (nowMs) => [...byId.values()].some((silence) => isActive(silence, nowMs)),
    async matching(labels, nowMs, pace) {
      const candidates: LoadedSilence[] = [];
      for (const name of others.keys())
        for (const silence of await taking(name, labelOf(labels, name), pace)) candidates.push(silence);
      for (const [name, byValue] of byName) candidates.push(...(byValue.get(labelOf(labels, name)) ?? []));
      const found: LoadedSilence[] = [];
      for (const silence of candidates) {
        if (!isActive(silence, nowMs)) continue;
        const turn = pace();
        if (turn !== undefined) await turn;
        const answer = allMatch(silence.matchers, (name) => labelOf(labels, name), pace);
        const matches = answer instanceof Promise ? await answer : answer;
        if (matches === true) found.push(silence);
      }
      return found;
    },
  };
}

/** Those of a tenant that has none. */
export const noSilences = silencesInForce(new Map());
