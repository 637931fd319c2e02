import type { Later } from "../../clause/expression.ts";
import { containsFolded, type FoldedRow, fieldOf, foldedRow, needlesIn } from "../../clause/folded-row.ts";
import { type TextAutomaton, textAutomaton } from "../../clause/text-automaton.ts";
import type { CompiledTrigger } from "../../clause/trigger.ts";
import { equalityKeys } from "../../clause/trigger-needs.ts";
import type { Pace } from "../../event-loop.ts";
import type { Reason } from "../subject/reason.ts";
import { type MatchRow, readsOf, type TriggerFields } from "./rows.ts";

/** A trigger of events, ready to be asked of rows. */
export interface EventTrigger extends CompiledTrigger {
  readonly name: string;
  /** Whether it looks at the status: others match nothing that is closed. */
  readonly namesStatus: boolean;
  readonly readsEntity: boolean;
  readonly readsCount: boolean;
}

/** Says why a trigger does not match an occurrence; undefined: it does, also where it is undecided, so that it notifies. */
export function triggerReason(
  { namesStatus, matches }: Pick<EventTrigger, "namesStatus" | "matches">,
  row: FoldedRow,
  isClosed: boolean,
  pace: Pace,
): Later<Reason | undefined> {
  if (isClosed && !namesStatus) return "statusNotNamed";
  const answer = matches(row, pace);
  return answer instanceof Promise ? answer.then(reasonOf) : reasonOf(answer);
}

const reasonOf = (answer: boolean | undefined) => (answer === false ? "false" : undefined);

/** Finds the triggers of events that a row may match, by the equalities and the texts that they need. */
export interface TriggerIndex {
  /** Whether the fields that it looks at need the row's entity, or count. */
  readonly readsEntity: boolean;
  readonly readsCount: boolean;
  /** About how many bytes it takes beside the triggers. */
  readonly bytes: number;
  candidates(row: FoldedRow): Set<EventTrigger>;
  /** The row as its triggers compare it: what they look at has been read, and changes no more. */
  folded(row: MatchRow): FoldedRow;
}

/** Where many texts are looked for in one field they are looked for at once; where few, one by one. */
const singlesMax = 16;
/** The texts that are looked for at once have at most this many places together, of 40 bytes each. */
const nodesMax = 1 << 20;
const nodeBytes = 40;
/** A pace is asked for after this many triggers. */
const portion = 100;

type ByKey = Map<string, EventTrigger[]>;

/** Triggers by what they need: by field, then by the value's key, or the text. */
interface Needs {
  /** The fields that they name. */
  readonly named: Set<string>;
  readonly always: EventTrigger[];
  readonly equalities: Map<string, ByKey>;
  readonly needles: Map<string, ByKey>;
  /** All texts that triggers look for, by field. */
  readonly contains: Map<string, Set<string>>;
}

function put<T>(of: Map<string, T>, key: string, make: () => T): T {
  const there = of.get(key) ?? make();
  of.set(key, there);
  return there;
}

async function needsOf(triggers: Iterable<EventTrigger>, pace: Pace): Promise<Needs> {
  const needs: Needs = {
    named: new Set(),
    always: [],
    equalities: new Map(),
    needles: new Map(),
    contains: new Map(),
  };
  const add = (to: Map<string, ByKey>, field: string, key: string, trigger: EventTrigger) =>
    put(
      put(to, field, () => new Map()),
      key,
      () => [],
    ).push(trigger);
  let count = 0;
  for (const trigger of triggers) {
    if (++count % portion === 0) await pace();
    for (const name of trigger.fields) needs.named.add(name);
    for (const { field, text } of trigger.contains) put(needs.contains, field, () => new Set()).add(text);
    if (trigger.needs !== undefined) {
      for (const { field, key } of trigger.needs) add(needs.equalities, field, key, trigger);
    } else if (trigger.needles !== undefined) {
      for (const { field, text } of trigger.needles) add(needs.needles, field, text, trigger);
    } else needs.always.push(trigger);
  }
  return needs;
}

/** What finds the texts of each field at once; that of `before` where the field's texts are the same. */
async function automataOf(contains: Needs["contains"], before: ReadonlyMap<string, TextAutomaton>, pace: Pace) {
  const automata = new Map<string, TextAutomaton>();
  let nodes = nodesMax;
  for (const [field, texts] of contains) {
    if (texts.size <= singlesMax) continue;
    const there = before.get(field);
    const same = there !== undefined && there.needles === texts.size && [...texts].every((text) => there.has(text));
    const made = same ? there : await textAutomaton([...texts], { pace, nodesMax: nodes });
    nodes -= made.nodes;
    automata.set(field, made);
  }
  return automata;
}

/** An index as it was built, by which the next one of the tenant saves work. */
export interface BuiltIndex extends TriggerIndex {
  readonly automata: ReadonlyMap<string, TextAutomaton>;
}

/** An index over triggers. Those that need no equality and no text are candidates of every row. */
export async function triggerIndex(
  triggers: Iterable<EventTrigger>,
  values: TriggerFields["events"],
  { pace = () => undefined, before }: { pace?: Pace; before?: BuiltIndex | undefined } = {},
): Promise<BuiltIndex> {
  const { named, always, equalities, needles, contains } = await needsOf(triggers, pace);
  const automata = await automataOf(contains, before?.automata ?? new Map(), pace);
  const reads = [...equalities.keys(), ...needles.keys()].map(readsOf);
  const fields = new Map([...named].map((name) => [name, values.field(name)]));
  const bytes = [...automata.values()].reduce((sum, { nodes }) => sum + nodes * nodeBytes, 0);
  return {
    readsEntity: reads.includes("entity"),
    readsCount: reads.includes("count"),
    bytes,
    automata,
    folded: (row) => foldedRow(row, { values: { field: (name) => fields.get(name) }, automata }),
    candidates(row) {
      const found = new Set(always);
      const add = (more: readonly EventTrigger[] = []) => {
        for (const trigger of more) found.add(trigger);
      };
      for (const [field, byKey] of equalities) {
        for (const key of equalityKeys(fieldOf(row, field)?.elements ?? [])) add(byKey.get(key));
      }
      for (const [field, byText] of needles) {
        const own = fieldOf(row, field);
        if (own === undefined || own.elements.length === 0) continue;
        const at = automata.get(field);
        if (at === undefined) for (const [text, more] of byText) if (containsFolded(own, text)) add(more);
        if (at === undefined) continue;
        for (const text of needlesIn(own) ?? []) add(byText.get(text));
        // What had no room in the automaton.
        if (at.needles < (contains.get(field)?.size ?? 0)) {
          for (const [text, more] of byText) if (!at.has(text) && containsFolded(own, text)) add(more);
        }
      }
      return found;
    },
  };
}
