import { paced } from "../../event-loop.ts";
import { toTexts } from "../../events/fields.ts";
import { isAlert, type LabelView } from "../../events/labels.ts";
import { groupMemberKey, isElsewhere, membershipsOf, readGroups, type StoredGroup } from "../groups/group-store.ts";
import { readEntitiesOf, rowLabels } from "../rules/rows.ts";
import type { LoadedRule } from "../rules/tenant-rules.ts";
import { holdsOf, mayHold, mutesOver } from "../silences/mutes.ts";
import { groupJobs } from "../subject/group-jobs.ts";
import type { Over } from "../subject/notice.ts";
import { keyText } from "../subject/subject.ts";
import type { Batch, Ongoing, Stage } from "./batch.ts";

/** An ongoing match with its labels. */
interface Labelled extends Ongoing {
  readonly labels: LabelView;
  /** The destinations at which nothing holds it; none where nothing may. */
  readonly free: readonly string[];
}

/** Tells whether a change of an event may move it to another group: its name is `alertname`, and never changes. */
const mayMove = ({ grouping }: LoadedRule) => grouping?.by.some((name) => name !== "alertname") === true;

/**
 * Follows the labels of what goes on: a member whose group is another one by them is taken into it, and what a silence held that no
 * longer matches them is looked at again. Alerts have the same labels for ever.
 */
export const relabel: Stage = async ({ tx, tenantId, nowMs, noted, ongoing, silences, over, jobs }) => {
  const inForce = { silences, nowMs };
  const asksMutes = mayHold(inForce);
  const asked = ongoing.filter(
    ({ rule, row }) => (asksMutes || mayMove(rule)) && !isAlert(toTexts(row), { type: row.type }),
  );
  if (asked.length === 0) return {};
  await readEntitiesOf(
    tx,
    tenantId,
    asked.map(({ row }) => row),
  );
  const pace = paced(undefined, tenantId);
  const singles: Labelled[] = [];
  const members: Labelled[] = [];
  for (const each of asked) {
    await pace();
    const { rule, subject, row } = each;
    const labels = rowLabels(row);
    const state = { labels, entity: row.entity };
    const mutedBy = asksMutes ? await mutesOver(state, { ...inForce, pace }) : undefined;
    const holds = mutedBy && holdsOf(mutedBy, rule);
    const free = rule.destinationNames.filter((name) => holds?.has(name) === false);
    const isGrouped = noted.get(keyText(subject.key))?.get(rule.id)?.grouped === true;
    (isGrouped ? members : singles).push({ ...each, labels, free });
  }
  const moved = await regroup({ tx, tenantId }, members);
  return {
    over: [...over, ...moved.over, ...singles.flatMap((each) => released(each, each.subject.key))],
    jobs: moved.members.length === 0 ? jobs : [...jobs, groupJobs(moved.members)],
  };
};

/** What silences hold of a match, or of its group, is looked at where they hold it no more. */
const released = ({ rule: { id }, free }: Labelled, key: Buffer): Over[] =>
  free.length === 0 ? [] : [{ rule: { id, destinationNames: free }, key, heldOnly: true }];

/** Finds members that are in another group than their labels say, or in one that waits for a silence which holds them no more. */
async function regroup({ tx, tenantId }: Pick<Batch, "tx" | "tenantId">, all: readonly Labelled[]) {
  const members: { ruleId: string; subject: { key: Buffer } }[] = [];
  const over: Over[] = [];
  for (const [rule, some] of Map.groupBy(all, (each) => each.rule)) {
    const keys = some.map(({ subject }) => groupMemberKey(subject));
    const stored = await membershipsOf(tx, tenantId, rule.id, keys);
    const byMember = Map.groupBy(stored, ({ member }) => keyText(member));
    const isAsked = some.some(({ free }) => free.length > 0);
    const groupKeys = new Map(stored.map(({ groupKey }) => [keyText(groupKey), groupKey]));
    const groups = isAsked ? await readGroups(tx, tenantId, rule.id, [...groupKeys.values()]) : [];
    const held = new Set(groups.filter(isHeldUnheard).map(({ key }) => keyText(key)));
    for (const each of some) {
      const own = byMember.get(keyText(groupMemberKey(each.subject))) ?? [];
      const waits = each.free.length > 0 && own.some(({ groupKey }) => held.has(keyText(groupKey)));
      if (waits || (mayMove(rule) && isElsewhere(rule, each.labels, own)))
        members.push({ ruleId: rule.id, subject: each.subject });
      over.push(...own.flatMap(({ groupKey }) => released(each, groupKey)));
    }
  }
  return { members, over };
}

const isHeldUnheard = ({ held, flushedMs }: StoredGroup) => held && flushedMs === undefined;
