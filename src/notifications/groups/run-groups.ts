import { LRUCache } from "lru-cache";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { Db } from "../../db/connect.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { newRoot } from "../../events/facts.ts";
import { failpoint } from "../../failpoint.ts";
import { type Again, enqueue, type Job, type NewJob } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { type Grouping, groupLabels, groupsMax, sameGroups } from "../rules/grouping.ts";
import type { RulesMemory } from "../rules/rules-memory.ts";
import type { LoadedRule, TenantRules } from "../rules/tenant-rules.ts";
import { mayHold } from "../silences/mutes.ts";
import { noSilences } from "../silences/silences-in-force.ts";
import { deliveryId } from "../subject/delivery-id.ts";
import { flushJob, type GroupPayload, groupJobs, groupsKind } from "../subject/group-jobs.ts";
import type { Notice, Over } from "../subject/notice.ts";
import { groupSubject, keyText } from "../subject/subject.ts";
import {
  type Flush,
  fires,
  firstFlushMs,
  flush,
  type GroupManner,
  isHeldEverywhere,
  isResolved,
  isSilenced,
  type MemberView,
  nextFlushMs,
  sentAfter,
} from "./flush.ts";
import { groupSnapshot, type Listed } from "./group-snapshot.ts";
import {
  countGroups,
  dueGroups,
  type GroupMessage,
  groupMemberKey,
  keepGrouping,
  keepMessages,
  lockGroups,
  membershipsOf,
  membersOf,
  nextDueMs,
  readGroups,
  removeGroups,
  removeMembers,
  type StoredGroup,
  type StoredMember,
  takingSinceMs,
  writeGroups,
  writeMembers,
} from "./group-store.ts";
import { type Asking, readStanding, type Standing } from "./read-standing.ts";

/** What one run takes: keys of subjects, groups, and members of these. */
const keysMax = 2000;
const groupsAtOnce = 200;
const membersAtOnce = 2000;
/** Members that are read together, unless one group has more. */
const membersTogether = 500;
/** Triggers that a delivery names. */
const triggersMax = 100;
/** What must wait for other changes is looked at again after this time. */
const laterMs = 200;

/** Rules of which this process remembers what silences were asked for groups that took more than a run. */
const unfinishedMax = 100;

/** Functions of the layer that decides, which lies below this one. */
export interface GroupFlushing {
  readonly memory: Pick<RulesMemory, "now">;
  /** Stores messages, and has what they make unnecessary rechecked. */
  send(
    tx: Db,
    tenantId: string,
    messages: { readonly notices: readonly Notice[]; readonly over: readonly Over[] },
    nowMs: number,
  ): Promise<void>;
  /** Returns when the oldest change was stored that no rule has seen yet, ms; Infinity: they have seen all. */
  unseenSinceMs(db: Db, tenantId: string, nowMs: number): Promise<number>;
  /** Leaves jobs that take what these rules match out of its groups. */
  ungroup(tx: Db, tenantId: string, ruleIds: readonly string[], nowMs: number): Promise<void>;
}

/** Looks at the groups of rules: takes in what began, and flushes what is due. */
export function groupJob(flushing: GroupFlushing): JobKind {
  const unfinished = new LRUCache<string, Unfinished>({ max: unfinishedMax });

  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number): Promise<readonly Again[]> {
    const rules = await flushing.memory.now(tx, tenantId);
    const again: Again[] = [];
    const timers: NewJob[] = [];
    const ungrouping: string[] = [];
    const notices: Notice[] = [];
    const over: Over[] = [];
    const byRule = [...Map.groupBy(jobs, ({ payload }) => (payload as GroupPayload).ruleId)].sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
    for (const [ruleId, own] of byRule) {
      const rule = rules.byId.get(ruleId);
      // One that is disabled is looked at when it is enabled again.
      if (rule === undefined) continue;
      const pace = paced(undefined, tenantId);
      const keys = own
        .flatMap(({ payload }) => (payload as GroupPayload).keys)
        .map((key) => Buffer.from(key, "base64url"));
      const place = `${tenantId} ${ruleId}`;
      const known = unfinished.get(place);
      const answers: Asking["answers"] = known?.silences === rules.silences ? known.answers : new Map();
      const asking: Asking = { answers, isLate: false };
      const done = await lookAtRule({ flushing, tx, tenantId, rule, rules, nowMs, pace, asking }, keys, own);
      if (asking.isLate) unfinished.set(place, { silences: rules.silences, answers });
      else unfinished.delete(place);
      notices.push(...done.notices);
      over.push(...done.over.map((key) => ({ rule, key, heldOnly: true })));
      const [first] = own as [Job, ...Job[]];
      if (rule.grouping === null && done.moved.length > 0) ungrouping.push(ruleId);
      else {
        const { jobs: moves } = groupJobs(done.moved.map((subject) => ({ ruleId, subject })));
        timers.push(...moves.map((job) => ({ ...job, dueMs: nowMs })));
      }
      if (done.nextMs === undefined) continue;
      if (done.nextMs > nowMs) timers.push(flushJob(ruleId, done.nextMs));
      else {
        const payload: GroupPayload = { ruleId, keys: [], ...(done.untilMs && { untilMs: done.untilMs }) };
        again.push({ id: first.id, payload, dueMs: nowMs + (done.isLate ? laterMs : 0) });
      }
    }
    if (notices.length > 0 || over.length > 0) {
      await flushing.send(tx, tenantId, { notices, over }, nowMs);
      failpoint("groups:flushed");
    }
    await enqueue(tx, { tenantId, kind: groupsKind }, timers, nowMs);
    await flushing.ungroup(tx, tenantId, ungrouping, nowMs);
    return again;
  }
  return { name: groupsKind, sizeMax: keysMax, timed: true, run };
}

/** What silences have answered about the members of a rule's groups, that a run had no time to ask them all about. */
interface Unfinished extends Pick<Asking, "answers"> {
  readonly silences: TenantRules["silences"];
}

/** What a look at the groups of a rule works with. */
interface Look {
  readonly flushing: GroupFlushing;
  readonly asking: Asking;
  readonly tx: Db;
  readonly tenantId: string;
  readonly rule: LoadedRule;
  readonly rules: TenantRules;
  readonly nowMs: number;
  readonly pace: Pace;
}

/** What a look comes to. */
interface Looked {
  readonly notices: readonly Notice[];
  /** The groups of which something has ended while silences may hold their messages. */
  readonly over: readonly Buffer[];
  /** When the next flush is due; undefined: none is. */
  readonly nextMs: number | undefined;
  /** Whether changes that were stored before a flush is due wait to be matched. */
  readonly isLate: boolean;
  /** Until when jobs were made that the next look waits for, ms. */
  readonly untilMs?: number | undefined;
  /** Members that belong to other groups by now, or to none where the rule groups no more. */
  readonly moved: readonly { key: Buffer }[];
}

const nothing: Looked = { notices: [], over: [], nextMs: undefined, isLate: false, moved: [] };

async function lookAtRule(look: Look, keys: readonly Buffer[], own: readonly Job[]): Promise<Looked> {
  const { tx, tenantId, rule, nowMs } = look;
  const { grouping } = rule;
  const stored = await lockGroups(tx, tenantId, rule.id, grouping);
  const began = keys.map((key) => ({ key }));
  if (stored === undefined) return { ...nothing, moved: began };
  if (grouping === null || !sameGroups(stored, grouping)) {
    const { isWhole, moved, ...flushed } = await flushDue(look, stored, undefined);
    if (isWhole) await keepGrouping(tx, tenantId, rule.id, grouping);
    // What began meanwhile joins with what is regrouped.
    return { ...nothing, ...flushed, nextMs: isWhole ? undefined : nowMs, moved: [...moved, ...began] };
  }
  if (stored.waitSec !== grouping.waitSec || stored.intervalSec !== grouping.intervalSec)
    await keepGrouping(tx, tenantId, rule.id, grouping);
  if (keys.length > 0) await take(look, grouping, keys);
  const dueMs = await nextDueMs(tx, tenantId, rule.id);
  if (dueMs === undefined || dueMs > nowMs) return { ...nothing, nextMs: dueMs };
  const late = { ...nothing, nextMs: dueMs, isLate: true };
  if ((await look.flushing.unseenSinceMs(tx, tenantId, nowMs)) <= dueMs) return late;
  // What is matched may be in a job that came after this run's, or that another server has, or had when it died.
  const known = own.flatMap(({ payload }) => (payload as GroupPayload).untilMs ?? []);
  const ids = own.map(({ id }) => id);
  const untilMs = await takingSinceMs(tx, tenantId, rule.id, ids, known.length > 0 ? Math.max(...known) : undefined);
  if (untilMs !== undefined) return { ...late, untilMs };
  const { isWhole: _, ...flushed } = await flushDue(look, grouping, nowMs);
  return { ...nothing, ...flushed, nextMs: await nextDueMs(tx, tenantId, rule.id) };
}

function mannerOf({ rule }: Look, { waitSec, intervalSec }: Grouping): GroupManner {
  const { repeat, repeatWhile, repeatIntervalMs, sendUpdates, destinationNames } = rule;
  const repeats = repeat && repeatWhile !== RepeatWhile.UNSPECIFIED;
  return {
    waitMs: waitSec * 1000,
    intervalMs: intervalSec * 1000,
    sendUpdates,
    repeatIntervalMs: repeats ? repeatIntervalMs : undefined,
    whileUnacknowledged: repeatWhile === RepeatWhile.UNACKNOWLEDGED,
    destinationNames,
  };
}

const isOf =
  ({ key }: Standing["match"]["subject"]) =>
  (member: StoredMember) =>
    member.subject.equals(key);

/** Takes in what began, and has the groups of what began or ended flushed when it is time. */
async function take(look: Look, grouping: Grouping, keys: readonly Buffer[]): Promise<void> {
  const { tx, tenantId, rule, nowMs, pace } = look;
  const manner = mannerOf(look, grouping);
  const standing = await readStanding(tx, tenantId, rule, keys, { silences: noSilences, nowMs, pace });
  const began = [...standing.values()].filter(({ fires }) => fires);
  const texts = new Set(keys.flatMap((key) => membersNamed(key, standing)));
  const asked = Array.from(texts, (text) => Buffer.from(text, "latin1"));
  const before = Map.groupBy(await membershipsOf(tx, tenantId, rule.id, asked), ({ member }) => keyText(member));
  const wanted = new Map<string, Buffer>();
  const placed = began.map((each) => {
    const labels = groupLabels(grouping, each.labels);
    const key = groupSubject(rule.id, labels);
    wanted.set(keyText(key), key);
    return { each, labels, key };
  });
  for (const some of before.values()) for (const { groupKey } of some) wanted.set(keyText(groupKey), groupKey);
  const beyondKey = groupSubject(rule.id, undefined);
  wanted.set(keyText(beyondKey), beyondKey);
  const groups = new Map(
    (await readGroups(tx, tenantId, rule.id, [...wanted.values()])).map((group) => [keyText(group.key), group]),
  );
  const isNew = placed.some(({ key }) => !groups.has(keyText(key)));
  let room = isNew
    ? groupsMax - (await countGroups(tx, tenantId, rule.id)) + (groups.has(keyText(beyondKey)) ? 1 : 0)
    : 0;
  const changed = new Map<string, StoredGroup>();
  const hasten = (group: StoredGroup, dueMs: number) => {
    const now = changed.get(keyText(group.key)) ?? group;
    changed.set(keyText(group.key), { ...now, dueMs: Math.min(now.dueMs ?? Infinity, dueMs) });
  };
  const members: StoredMember[] = [];
  /** The groups of those that fire, by their subjects. */
  const places = new Map<string, Buffer>();
  for (const { each, labels, key } of placed) {
    await pace();
    const { subject } = each.match;
    const own = before.get(keyText(groupMemberKey(subject))) ?? [];
    const isBeyond = own.some(({ groupKey }) => groupKey.equals(beyondKey));
    if (!isBeyond && !groups.has(keyText(key)) && room > 0) {
      room--;
      groups.set(keyText(key), fresh(key, labels));
    }
    const group =
      (isBeyond ? undefined : groups.get(keyText(key))) ?? groups.get(keyText(beyondKey)) ?? fresh(beyondKey, {});
    groups.set(keyText(group.key), group);
    places.set(keyText(subject.key), group.key);
    const there = own.find(({ groupKey }) => groupKey.equals(group.key));
    const joinsMs = joinMs(each.match, there, own.some(isOf(subject)), rule.delayMs, nowMs);
    members.push({
      groupKey: group.key,
      member: groupMemberKey(subject),
      subject: subject.key,
      joinsMs,
      sentTo: there?.sentTo ?? [],
      againAt: there?.againAt ?? [],
    });
    if (group.flushedMs === undefined) hasten(group, firstFlushMs({ joinsMs, startMs: each.startMs }, manner.waitMs));
    else hasten(group, nextFlushMs(group.flushedMs, manner.intervalMs, Math.max(nowMs, joinsMs - 1)));
  }
  for (const some of before.values())
    for (const { groupKey } of some) {
      const group = groups.get(keyText(groupKey));
      if (group?.flushedMs !== undefined) hasten(group, nextFlushMs(group.flushedMs, manner.intervalMs, nowMs));
    }
  const named = new Set(keys.map(keyText));
  const over = [...before.values()].flat().filter(({ subject, groupKey }) => {
    const isOver = !standing.get(keyText(subject))?.fires || places.get(keyText(subject))?.equals(groupKey) === false;
    return named.has(keyText(subject)) && isOver;
  });
  // What ends, or leaves, before its delay does or while it is held has never joined.
  const held = await heldOf(look, manner, over);
  const early = over.filter((each) => each.joinsMs > nowMs || held.has(each));
  await removeMembers(tx, tenantId, rule.id, early);
  await writeMembers(tx, tenantId, rule.id, lastOf(members));
  await writeGroups(tx, tenantId, rule.id, [...changed.values()]);
}

/** Finds those that were in no message and that silences or windows hold everywhere. */
async function heldOf(
  { tx, tenantId, rule, rules: { silences }, nowMs, pace }: Look,
  manner: GroupManner,
  members: readonly StoredMember[],
): Promise<ReadonlySet<StoredMember>> {
  const unsent = members.filter(({ sentTo }) => sentTo.length === 0);
  if (unsent.length === 0 || !(mayHold({ silences, nowMs }) || rule.muteDuringMaintenance)) return new Set();
  const keys = new Map(unsent.map(({ subject }) => [keyText(subject), subject]));
  const standing = await readStanding(tx, tenantId, rule, [...keys.values()], { silences, nowMs, pace });
  return new Set(
    unsent.filter(({ subject }) => {
      const now = standing.get(keyText(subject));
      return now !== undefined && isHeldEverywhere(manner, now.holds);
    }),
  );
}

/**
 * When a member joins a group. One that was in a message, or has joined and waits for no delay anew, joined when it did; one that comes
 * from another group by a change of its labels joins now.
 */
function joinMs(
  { matchedMs }: Standing["match"],
  there: StoredMember | undefined,
  isMember: boolean,
  delayMs: number,
  nowMs: number,
): number {
  const afterDelayMs = matchedMs + delayMs;
  if (there !== undefined) {
    const { sentTo, joinsMs } = there;
    const hasJoined = joinsMs <= nowMs && (delayMs === 0 || afterDelayMs <= joinsMs);
    return sentTo.length > 0 || hasJoined ? joinsMs : afterDelayMs;
  }
  return isMember ? Math.max(nowMs, afterDelayMs) : afterDelayMs;
}

/** Of an event of which two occurrences are named the later one counts. */
const lastOf = (members: readonly StoredMember[]) => [
  ...new Map(
    members
      .toSorted((a, b) => Buffer.compare(a.subject, b.subject))
      .map((each) => [`${keyText(each.groupKey)}${keyText(each.member)}`, each]),
  ).values(),
];

const eventIdBytes = 20;

/** The members that a subject may be: of one that is forgotten its key says no more than that it begins with an event's id. */
function membersNamed(key: Buffer, standing: ReadonlyMap<string, Standing>): string[] {
  const subject = standing.get(keyText(key))?.match.subject;
  return subject === undefined
    ? [keyText(key), keyText(key.subarray(0, eventIdBytes))]
    : [keyText(groupMemberKey(subject))];
}

const fresh = (key: Buffer, labels: Readonly<Record<string, string>>): StoredGroup => ({
  key,
  labels,
  flushedMs: undefined,
  dueMs: undefined,
  repeatMs: undefined,
  openedMs: undefined,
  lastMs: 0,
  openAt: [],
  held: false,
});

/** The first groups that have so many members together, at least one. */
function firstGroups<T extends { readonly count: number }>(groups: readonly T[], membersMax: number): T[] {
  let count = 0;
  const end = groups.findIndex((group, i) => {
    count += group.count;
    return i > 0 && count > membersMax;
  });
  return end === -1 ? [...groups] : groups.slice(0, end);
}

/**
 * Reads groups with their members as they stand, the first of them: those about whose members the silences could be asked in time. None: what
 * they have answered is remembered for the next run.
 */
async function readDue(look: Look, groups: readonly (StoredGroup & { readonly count: number })[]) {
  const { tx, tenantId, rule, rules, nowMs, pace, asking } = look;
  const due: StoredGroup[] = [];
  const members = new Map<string, StoredMember[]>();
  const standing = new Map<string, Standing>();
  for (let from = 0; from < groups.length && !asking.isLate; ) {
    const some = firstGroups(groups.slice(from), membersTogether);
    from += some.length;
    const keys = some.map(({ key }) => key);
    const stored = await membersOf(tx, tenantId, rule.id, keys);
    const subjects = new Map(stored.map(({ subject }) => [keyText(subject), subject]));
    const reading = { silences: rules.silences, nowMs, pace, asking };
    const found = await readStanding(tx, tenantId, rule, [...subjects.values()], reading);
    if (asking.isLate) break;
    for (const [key, each] of found) standing.set(key, each);
    for (const [key, own] of Map.groupBy(stored, ({ groupKey }) => keyText(groupKey))) members.set(key, own);
    due.push(...some);
  }
  return { due, members, standing };
}

/** Flushes groups that are due, as many as one run takes; without a time all, which end then. */
async function flushDue(look: Look, grouping: Grouping, untilMs: number | undefined) {
  const { tx, tenantId, rule, rules, nowMs, pace } = look;
  const ends = untilMs === undefined;
  const all = await dueGroups(tx, tenantId, rule.id, untilMs, groupsAtOnce);
  const { due, members: byGroup, standing } = await readDue(look, firstGroups(all, membersAtOnce));
  const notices: Notice[] = [];
  const messages: GroupMessage[] = [];
  const kept: StoredGroup[] = [];
  const over: Buffer[] = [];
  const settled: Buffer[] = [];
  const changed: StoredMember[] = [];
  const gone: StoredMember[] = [];
  const moved: { key: Buffer }[] = [];
  for (const group of due) {
    const flushed = await flushGroup(look, grouping, group, byGroup.get(keyText(group.key)) ?? [], standing, ends);
    notices.push(...flushed.notices);
    messages.push(...flushed.messages);
    changed.push(...flushed.changed);
    gone.push(...flushed.gone);
    moved.push(...flushed.moved);
    if (flushed.group === undefined) over.push(group.key);
    else kept.push(flushed.group);
    if (flushed.group === undefined || flushed.gone.length > 0) settled.push(group.key);
  }
  await keepMessages(tx, tenantId, messages, pace);
  await writeMembers(tx, tenantId, rule.id, changed);
  await removeMembers(tx, tenantId, rule.id, gone);
  await writeGroups(tx, tenantId, rule.id, kept);
  await removeGroups(tx, tenantId, rule.id, over);
  const ended = mayHold({ ...rules, nowMs }) ? settled : [];
  return { notices, over: ended, moved, isWhole: due.length === all.length && all.length < groupsAtOnce };
}

/** What the flush of one group comes to. */
interface FlushedGroup {
  readonly notices: readonly Notice[];
  readonly messages: readonly GroupMessage[];
  readonly changed: readonly StoredMember[];
  readonly gone: readonly StoredMember[];
  readonly moved: readonly { key: Buffer }[];
  /** Undefined: the group is over. */
  readonly group: StoredGroup | undefined;
}

/** A member with what stands of it. */
interface Member extends MemberView {
  readonly stored: StoredMember;
  readonly standing: Standing | undefined;
}

async function flushGroup(
  look: Look,
  grouping: Grouping,
  group: StoredGroup,
  stored: readonly StoredMember[],
  standing: ReadonlyMap<string, Standing>,
  ends: boolean,
): Promise<FlushedGroup> {
  const { rule, nowMs, pace } = look;
  const manner = mannerOf(look, grouping);
  const isBeyond = group.key.equals(groupSubject(rule.id, undefined));
  const members: Member[] = [];
  const moved: { key: Buffer }[] = [];
  for (const each of stored) {
    await pace();
    const now = standing.get(keyText(each.subject));
    const leaves =
      now?.fires === true && !isBeyond && !groupSubject(rule.id, groupLabels(grouping, now.labels)).equals(group.key);
    if (now?.fires && (leaves || ends)) moved.push({ key: each.subject });
    const fires = now?.fires === true && !leaves;
    const isEarly = each.joinsMs > nowMs;
    members.push({
      state: fires ? (isEarly ? "waiting" : "firing") : isEarly ? "gone" : "ended",
      joinsMs: each.joinsMs,
      startMs: now?.startMs ?? each.joinsMs,
      acknowledged: now?.found?.occurrence.acknowledged ?? false,
      sentTo: each.sentTo,
      againAt: each.againAt,
      holds: now?.holds ?? new Map(),
      stored: each,
      standing: now,
    });
  }
  const dueMs = Math.min(group.dueMs ?? nowMs, nowMs);
  const first = flush(manner, group, members, dueMs, nowMs);
  const said = await messagesOf(look, group, isBeyond, members, first.sends, group.lastMs);
  const told = sentAfter(members, first.sends);
  if (ends && first.group !== undefined) {
    const ended = told.map((each): Member => ({ ...each, state: each.state === "firing" ? "ended" : each.state }));
    const last = flush(manner, { ...first.group, repeatMs: undefined }, ended, dueMs, nowMs);
    const clears = new Map([...last.sends].filter(([, occasion]) => occasion === "clear"));
    const after = await messagesOf(look, group, isBeyond, ended, clears, said.lastMs);
    const notices = [...said.notices, ...after.notices];
    return { notices, messages: [...said.messages, ...after.messages], changed: [], gone: [], moved, group: undefined };
  }
  const { notices, messages, lastMs } = said;
  const changed = told.filter(({ sentTo, againAt }, i) => {
    const { sentTo: sentBefore, againAt: againBefore } = members[i] as Member;
    return sentTo.length > sentBefore.length || againAt.join("\n") !== againBefore.join("\n");
  });
  return {
    notices,
    messages,
    changed: changed.map(({ stored: row, sentTo, againAt }) => ({ ...row, sentTo, againAt })),
    gone: members.flatMap(({ state, stored }) =>
      state === "gone" || (state === "ended" && !first.isEarly) ? [stored] : [],
    ),
    moved,
    group: first.group && {
      ...group,
      ...first.group,
      lastMs,
      openedMs: first.group.openAt.length === 0 ? undefined : (group.openedMs ?? lastMs),
    },
  };
}

/** Makes the messages of a flush: destinations that hear of the same members share one. */
async function messagesOf(
  { rule, nowMs, pace }: Look,
  group: StoredGroup,
  beyond: boolean,
  members: readonly Member[],
  sends: Flush["sends"],
  beforeMs: number,
) {
  const notices: Notice[] = [];
  const messages = new Map<string, GroupMessage>();
  if (sends.size === 0) return { notices, messages: [], lastMs: beforeMs };
  const createdMs = Math.max(nowMs, beforeMs + 1);
  const root = newRoot();
  for (const [name, occasion] of sends) {
    await pace();
    const isListed = (each: Member) => fires(each, name) || (rule.sendUpdates && isResolved(each, name));
    const chosen = members.flatMap((each, i) =>
      each.standing && isListed(each) ? [{ each, standing: each.standing, i }] : [],
    );
    const silenced = members.flatMap((each) => (each.standing && isSilenced(each, name) ? [each.standing] : []));
    const key = `${chosen.map(({ i }) => i).join()} ${silenced.length}`;
    let message = messages.get(key);
    if (message === undefined) {
      const own = chosen.map(({ each, standing }): Listed => ({ standing, resolved: each.state !== "firing" }));
      const { told, listed } = await groupSnapshot({ labels: group.labels, beyond }, own, pace, silenced);
      message = {
        id: deliveryId(createdMs),
        told,
        members: listed.map(({ standing, resolved }) => ({ subject: standing.match.subject, resolved })),
      };
      messages.set(key, message);
    }
    const { firing, resolved, severity } = message.told;
    const triggerNames = [...new Set(chosen.flatMap(({ standing }) => standing.match.triggerNames[0] ?? []))];
    const chain = chosen.reduce<readonly string[]>(
      (a, { standing }) => (standing.chain.length > a.length ? standing.chain : a),
      [],
    );
    notices.push({
      occasion,
      createdMs,
      dueMs: nowMs,
      ruleId: rule.id,
      ruleName: rule.name,
      destinationNames: [name],
      triggerNames: triggerNames.slice(0, triggersMax),
      subject: { key: group.key },
      told: {
        severity,
        root,
        group: { message: message.id, firing, resolved },
        ...(chain.length > 0 && { chain: [...chain] }),
      },
    });
  }
  return { notices, messages: [...messages.values()], lastMs: createdMs };
}
