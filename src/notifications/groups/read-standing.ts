import type { Db } from "../../db/connect.ts";
import type { EntityRow } from "../../entities/messages.ts";
import type { Pace } from "../../event-loop.ts";
import type { LabelView } from "../../events/labels.ts";
import { CLOSED, type Occurrence } from "../../events/lifecycle.ts";
import { nilRule, readMatches, type StoredMatch } from "../rules/match-store.ts";
import type { LoadedRule } from "../rules/tenant-rules.ts";
import { holdsOf, inMaintenance, lastOf, type MutesInForce, mayHold, mutesOver, nothing } from "../silences/mutes.ts";
import { workMs } from "../silences/silences-in-force.ts";
import { type LabelledState, viewOf } from "../subject/labels.ts";
import type { Holds, MutedBy } from "../subject/notice.ts";
import { readSubjects, type SubjectState } from "../subject/read-subjects.ts";
import { keyText } from "../subject/subject.ts";

/** What stands of a subject for a rule that groups. */
export interface Standing {
  readonly match: StoredMatch;
  /** Of an occurrence. */
  readonly found: SubjectState["occurrence"];
  readonly entity: EntityRow | undefined;
  readonly labels: LabelView;
  /** Whether it is notified as a member, and has not ended: a closed occurrence has. */
  readonly fires: boolean;
  /** When it began to match, or its alert to fire. */
  readonly startMs: number;
  /** The rules that made it. */
  readonly chain: readonly string[];
  /** By destination: the silence that holds it. */
  readonly silenced: Holds;
  /** By destination: until when something holds it back. */
  readonly holds: ReadonlyMap<string, number>;
}

/** What was asked of mutes about members, until a time: what is left is asked in the next run. */
export interface Asking {
  /** By the subject and how it stands. */
  readonly answers: Map<string, MutedBy>;
  /** When the time is over that the first question began; undefined: none was asked. So each run asks one at least. */
  untilMs?: number;
  /** Whether some were not asked. */
  isLate: boolean;
}

const portion = 500;

/** Asks what mutes a subject, once for as long as it stands so. */
async function mutesOf(
  { asking, ...inForce }: Reading,
  { subject: { key } }: StoredMatch,
  occurrence: Occurrence | undefined,
  state: LabelledState,
): Promise<MutedBy> {
  if (asking === undefined || !mayHold(inForce)) return await mutesOver(state, inForce);
  const asked = `${keyText(key)}${occurrence?.severity}:${occurrence?.lastSeenMs}:${occurrence?.instanceCount}:${inMaintenance(state.entity)}`;
  const known = asking.answers.get(asked);
  if (known !== undefined) return known;
  asking.untilMs ??= performance.now() + workMs;
  if (performance.now() > asking.untilMs) {
    asking.isLate = true;
    return nothing;
  }
  const found = await mutesOver(state, inForce);
  asking.answers.set(asked, found);
  return found;
}

/** How subjects are read. */
interface Reading extends MutesInForce {
  readonly pace: Pace;
  /** Absent: all are asked about now. */
  readonly asking?: Asking;
}

/** Reads what stands of subjects, by their keys' texts; what is deleted is left out. */
export async function readStanding(
  tx: Db,
  tenantId: string,
  rule: LoadedRule,
  keys: readonly Buffer[],
  reading: Reading,
): Promise<Map<string, Standing>> {
  const { pace } = reading;
  const all = new Map<string, Standing>();
  for (let from = 0; from < keys.length; from += portion) {
    const noted = await readMatches(tx, tenantId, keys.slice(from, from + portion));
    const matches = [...noted.values()].flatMap((byRule) => byRule.get(rule.id) ?? []);
    const states = await readSubjects(
      tx,
      tenantId,
      matches.map(({ subject }) => subject),
    );
    for (const match of matches) {
      await pace();
      const { subject } = match;
      const state = states.get(keyText(subject.key));
      const { occurrence: found, entity } = state ?? {};
      const labels = viewOf(match, state);
      if (labels === undefined) continue;
      const mutedBy = await mutesOf(reading, match, found?.occurrence, { labels, entity });
      all.set(keyText(subject.key), {
        match,
        found,
        entity,
        labels,
        fires: match.standing && match.grouped === true && found?.occurrence.status !== CLOSED,
        startMs: found === undefined ? match.matchedMs : Math.min(Number(found.occurrence.startMs), match.matchedMs),
        chain: noted.get(keyText(subject.key))?.get(nilRule)?.chain ?? [],
        silenced: holdsOf(mutedBy, rule),
        holds: new Map(
          rule.destinationNames.flatMap((name) => {
            const mute = lastOf(mutedBy(rule, name));
            return mute === undefined ? [] : [[name, mute.untilMs]];
          }),
        ),
      });
    }
  }
  return all;
}
