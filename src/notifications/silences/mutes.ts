import type { Db } from "../../db/connect.ts";
import type { EntityRow } from "../../entities/messages.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { type LabelledState, type LabelledSubject, readLabels, subjectLabelsKey } from "../subject/labels.ts";
import type { Holds, Mute, MutedBy, MutedRule } from "../subject/notice.ts";
import { covers, type Silences, workMs } from "./silences-in-force.ts";

/** What of a tenant is in force when mutes are asked. */
export interface MutesInForce {
  readonly silences: Silences;
  readonly nowMs: number;
}

type Answer = (...asked: Parameters<MutedBy>) => Mute | undefined;

/** Asks one kind of mute about a subject; of several that mute a rule at a destination, the answer returns the one that ends last. */
type Kind = (state: LabelledState, inForce: MutesInForce & { readonly pace: Pace }) => Answer | Promise<Answer>;

/** What is held by a silence that ends with what it matched is due at its end, or never by itself. */
export const neverMs = 253_402_300_799_999;

const bySilence: Kind = async ({ labels }, { silences, nowMs, pace }) => {
  const found = await silences.matching(labels, nowMs, pace);
  return ({ name }, destination) => {
    let last: (typeof found)[number] | undefined;
    for (const each of found) if (covers(each, name, destination) && !(last && last.endsMs >= each.endsMs)) last = each;
    return last && { by: "silence", id: last.id, untilMs: Math.min(last.endsMs, neverMs) };
  };
};

/** Tells whether an entity is in a maintenance window. */
export const inMaintenance = (entity: Pick<EntityRow, "window_production_state"> | undefined): boolean =>
  (entity?.window_production_state ?? null) !== null;

const byWindow: Kind = ({ entity }) => {
  const mute = inMaintenance(entity) ? ({ by: "window", id: "", untilMs: Infinity } as const) : undefined;
  return ({ muteDuringMaintenance }) => (muteDuringMaintenance ? mute : undefined);
};

/** All kinds of mutes: a further one is a file of its own, and a line here. */
const kinds: readonly Kind[] = [bySilence, byWindow];

/** Tells whether anything may hold deliveries of a tenant; a window holds none. */
export const mayHold = ({ silences, nowMs }: MutesInForce) => silences.any(nowMs);

/** Answers that nothing mutes a subject. */
export const nothing: MutedBy = () => [];

/** Asks all kinds about a subject in its current state. */
export async function mutesOver(...asked: Parameters<Kind>): Promise<MutedBy> {
  const answers: Answer[] = [];
  for (const kind of kinds) answers.push(await kind(...asked));
  return (rule, destination) => answers.flatMap((answer) => answer(rule, destination) ?? []);
}

/**
 * Asks for `workMs` about subjects as they are now. The answer returns undefined of those for which there was no time left; nothing mutes
 * what is deleted.
 */
export async function askMutes(db: Db, tenantId: string, subjects: readonly LabelledSubject[], inForce: MutesInForce) {
  const states = await readLabels(db, tenantId, subjects);
  const pace = paced(undefined, tenantId);
  const found = new Map<string, MutedBy>();
  const untilMs = performance.now() + workMs;
  for (const [key, state] of states) {
    found.set(key, await mutesOver(state, { ...inForce, pace }));
    if (performance.now() > untilMs) break;
  }
  return (subject: LabelledSubject): MutedBy | undefined =>
    found.get(subjectLabelsKey(subject)) ?? (states.has(subjectLabelsKey(subject)) ? undefined : nothing);
}

/** Returns the mute that counts of several: the one that ends last. */
export const lastOf = (mutes: readonly Mute[]): Mute | undefined => mutes.toSorted((a, b) => b.untilMs - a.untilMs)[0];

/** Returns, by destination, what holds a rule's deliveries, in the form in which it is stored. */
export const holdsOf = (mutedBy: MutedBy, rule: MutedRule & { readonly destinationNames: readonly string[] }): Holds =>
  new Map(
    rule.destinationNames.flatMap((name) => {
      const mute = lastOf(mutedBy(rule, name).filter(({ by }) => by !== "window"));
      return mute === undefined ? [] : [[name, { silenceId: mute.id, untilMs: mute.untilMs }]];
    }),
  );
