import type { Db } from "../../db/connect.ts";
import type { RuleRef, StandingRule, Verdict } from "../deciding/verdict.ts";
import type { ThreadState } from "../kinds/attempt-outcome.ts";
import { isJoint, takesNoEnds } from "../kinds/kinds.ts";
import type { Share } from "../queue/claim.ts";
import { type ClaimedDelivery, memberKey } from "../queue/delivery-queue.ts";
import { lostMemberships, type Membership, type Memberships, noteLost, readMemberships } from "../queue/summaries.ts";
import type { Notification } from "../subject/notification.ts";
import { notificationOf, summaryNotification } from "./compose.ts";
import {
  type DeliveryFacts,
  type DeliveryTexts,
  type Opening,
  readDeliveryFacts,
  readDeliveryTexts,
  threadKeyOf,
} from "./delivery-context.ts";
import { keepSummary, type Summary, summarise } from "./summarise.ts";
import type { OpenDestination } from "./unseal-destination.ts";

/** A delivery that is to be tried. */
export interface Ready {
  readonly row: ClaimedDelivery;
  /** With its secrets readable, or why they are not. */
  readonly destination: OpenDestination | Error;
  readonly notification: Notification;
  /** What its kind keeps of the thread that it belongs to. */
  readonly state: ThreadState;
  /** Names the match that began the thread. */
  readonly match: string;
  /** Whether the thread is over after it. */
  readonly ends: boolean;
  /** Those that it sums up besides itself. */
  readonly others: readonly ClaimedDelivery[];
  /** The summary that it is sent as; undefined: it goes by itself. */
  readonly summary: { readonly id: string; readonly sent: boolean } | undefined;
  /** The summaries that report the match which ends with it. */
  readonly over: readonly Membership[];
}

/** A delivery that is done without a try, or goes back until `dueMs`. */
export interface Ended {
  readonly row: ClaimedDelivery;
  readonly status: "CANCELLED" | "FAILED" | "PENDING" | "SUMMARISED";
  readonly dueMs?: number;
  /** The silence that holds it until it is due. */
  readonly silenceId?: string;
  /** The rules whose matches it waits for until then. */
  readonly awaited?: readonly RuleRef[];
  readonly error: string;
  /** What was kept of its subject, where a lost try of it may have reached its receiver. */
  readonly state?: ThreadState;
  /** The summaries that report the match which ends with it. */
  readonly over?: readonly Membership[];
}

/** What is to be sent of what was claimed, and what is not. */
export interface Prepared {
  readonly ready: readonly Ready[];
  readonly ended: readonly Ended[];
}

/** What of a destination is to be sent: by itself, and as one. */
interface Judged {
  readonly singles: readonly ClaimedDelivery[];
  /** Two at least; else empty. */
  readonly group: readonly ClaimedDelivery[];
  readonly ended: readonly Ended[];
}

/** What is known of deliveries when they are judged. */
interface Judging {
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly facts: DeliveryFacts;
  readonly memberships: Memberships;
  /** Those whose last try was a summary's. */
  readonly lost: ReadonlySet<string>;
  readonly nowMs: number;
}

/**
 * Makes notifications of what was claimed, as far as it is still needed. Which of it is needed is decided first: texts are read of that
 * alone, and only what was looked for and not found counts as deleted.
 */
export async function prepare(
  tx: Db,
  tenantId: string,
  shares: readonly Share[],
  { verdicts, nowMs, ...opening }: Pick<Judging, "verdicts" | "nowMs"> & Opening,
): Promise<Prepared> {
  const rows = shares.flatMap((share) => share.rows);
  const early = shares.flatMap((share) => (share.allowed.summary ? [] : share.rows));
  const { held } = opening;
  const [facts, memberships, texts] = await Promise.all([
    readDeliveryFacts(tx, tenantId, rows, opening),
    readMemberships(tx, tenantId, rows),
    readDeliveryTexts(tx, tenantId, early, held),
  ]);
  const lost = lostMemberships(rows, memberships);
  if (lost.length > 0) await noteLost(tx, tenantId, lost, nowMs);
  const lostIds = new Set(lost.map(({ deliveryId }) => deliveryId));
  const judging = { verdicts, facts, memberships: asSent(memberships, lost), lost: lostIds, nowMs };
  const ready: Ready[] = [];
  const ended: Ended[] = [];
  const deleted = (row: ClaimedDelivery): Ended => ({
    row,
    status: "CANCELLED",
    error: "what it is about was deleted",
    over: summariesOver(row, judging),
  });
  for (const share of shares) {
    const judged = judgeShare(share, judging);
    ended.push(...judged.ended);
    const { summary, left, gone } = await summarise(tx, tenantId, judged.group, memberships);
    const singles = [...judged.singles, ...left];
    const read = share.allowed.summary
      ? await readDeliveryTexts(tx, tenantId, summary === undefined ? singles : [...singles, summary.row], held)
      : texts;
    if (summary !== undefined) {
      await keepSummary(tx, tenantId, summary);
      const made = prepareSummary(summary, judging, read, tenantId);
      if (made !== undefined) ready.push(made);
    }
    ended.push(...gone.map(deleted));
    for (const row of singles) {
      const made = prepareOne(row, judging, read, tenantId);
      if (made === undefined) ended.push(deleted(row));
      else ready.push(made);
    }
  }
  return { ready, ended };
}

/** The memberships when those of lost tries count as sent. */
function asSent(memberships: Memberships, lost: readonly Membership[]): Memberships {
  const ids = new Set(lost.map(({ summaryId }) => summaryId));
  if (ids.size === 0) return memberships;
  const noted = (each: Membership) => (ids.has(each.summaryId) ? { ...each, sent: true } : each);
  return new Map([...memberships].map(([key, all]) => [key, all.map(noted)]));
}

/** What cannot be judged yet is looked at again after this. */
const backMs = 1000;
/** A held end is looked at after this although nothing has hastened it. */
const heldMs = 300_000;

/**
 * Returns when the held end of a summary is looked at again. What it waits for hastens it; but a change that commits while the end is
 * judged for the first time finds nothing to hasten, so the second look comes soon.
 */
const heldUntilMs = ({ createdMs, dueMs }: ClaimedDelivery, nowMs: number) =>
  nowMs + (dueMs > createdMs ? heldMs : backMs);

/** Returns what is still needed of what was claimed at a destination; what it is about may have been deleted. */
function judgeShare({ rows, allowed, places }: Share, judging: Judging): Judged {
  const needed: ClaimedDelivery[] = [];
  const ended: Ended[] = [];
  const back = (row: ClaimedDelivery, dueMs = row.dueMs) =>
    void ended.push({ row, status: "PENDING", error: row.error, dueMs });
  /** Subjects of which something earlier goes out, or may have: their ends follow it. */
  const before = new Set<string>();
  for (const row of inOrder(rows)) {
    if (row.occasion === "clear" && before.has(threadKeyOf(row))) {
      back(row, judging.nowMs + backMs);
      continue;
    }
    const judged = judge(row, judging);
    if ("ended" in judged) ended.push(judged.ended);
    else needed.push(judged.row);
    if (!("ended" in judged) || row.lost || judged.ended.status === "PENDING") before.add(threadKeyOf(row));
  }
  if (!allowed.summary) return { singles: needed, group: [], ended };
  // The end of what was sent by itself is sent by itself. It goes first: there are no more of them than a destination has taken.
  const isEnd = ({ occasion }: ClaimedDelivery) => occasion === "clear";
  const ends = needed.filter(isEnd);
  const others = needed.filter((row) => !isEnd(row));
  const waiting = ends.length < places ? ends.slice(places) : [...ends.slice(places), ...others];
  for (const row of waiting) back(row);
  const singles = ends.slice(0, places);
  if (ends.length >= places) return { singles, group: [], ended };
  return others.length > 1 ? { singles, group: others, ended } : { singles: [...singles, ...others], group: [], ended };
}

/** Those of one subject in the order of their decisions. */
const inOrder = (rows: readonly ClaimedDelivery[]) =>
  rows.toSorted((a, b) => a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1));

/** A row as it is to be sent now, or why it is not. */
function judge(row: ClaimedDelivery, judging: Judging): { row: ClaimedDelivery } | { ended: Ended } {
  const { verdicts, facts, nowMs } = judging;
  const verdict = verdicts.get(row.id) ?? { send: true };
  const over = summariesOver(row, judging);
  const reason = needless(row, facts);
  if (reason !== undefined) return { ended: { row, status: "CANCELLED", error: reason, over } };
  if (row.occasion === "clear" && facts.threads.get(threadKeyOf(row))?.sent !== true) {
    if (over.length > 0) return { ended: { row, status: "SUMMARISED", error: "", over } };
    return { ended: { row, status: "CANCELLED", error: "nothing was sent that could be cleared" } };
  }
  const tellsEnds = (verdict.send === false || verdict.send === "silenced") && verdict.reportsEnds === true;
  if (tellsEnds && facts.threads.get(threadKeyOf(row))?.sent === true) return { row };
  if (verdict.send === "later") return { ended: { row, status: "PENDING", error: row.error, dueMs: nowMs + backMs } };
  if (verdict.send === "next") return { ended: asItWas(row, facts) };
  if (verdict.send === "held")
    return { ended: { row, status: "PENDING", error: row.error, dueMs: heldUntilMs(row, nowMs) } };
  if (verdict.send === "silenced") {
    const { silenceId, untilMs } = verdict;
    const ended = { row, status: "PENDING" as const, error: row.error, dueMs: untilMs, silenceId };
    // Of a receiver that may have taken it is kept that it may have.
    return { ended: row.lost ? { ...ended, state: threadOf(row, facts) } : ended };
  }
  const held = verdict.send && heldEnd(row, verdict.standing ?? [], facts, nowMs);
  if (held) return { ended: held.status === "PENDING" ? held : { ...held, over } };
  if (verdict.send) {
    const { told = row.told, occasion = row.occasion } = verdict;
    return { row: { ...row, told, occasion } };
  }
  // A receiver that may have taken it is notified of its end; what was lost in a summary, of the summary's.
  const lost = row.lost && (row.tries > 0 || !judging.lost.has(row.id));
  const ended = { row, status: "CANCELLED" as const, error: verdict.reason, over };
  return { ended: lost ? { ...ended, state: threadOf(row, facts) } : ended };
}

/** Gives back a delivery that was not judged: what held it is asked about again, and a receiver may have taken what was lost. */
function asItWas(row: ClaimedDelivery, facts: DeliveryFacts): Ended {
  const { silenceId, dueMs, error } = row;
  return {
    row,
    status: "PENDING",
    error,
    dueMs,
    ...(silenceId !== null && { silenceId }),
    ...(row.lost && { state: threadOf(row, facts) }),
  };
}

/** Returns the summaries that have reported what a delivery ends; not those of a match that began after it was decided. */
function summariesOver(row: ClaimedDelivery, { memberships }: Pick<Judging, "memberships">): readonly Membership[] {
  if (row.occasion !== "clear") return [];
  return (memberships.get(memberKey(row)) ?? []).filter(({ sent, createdMs }) => sent && createdMs <= row.createdMs);
}

/** The thread of a delivery, which it begins if there is none: `match` then names its own. */
const threadOf = (row: ClaimedDelivery, { threads }: DeliveryFacts) => ({
  match: String(row.createdMs),
  ...threads.get(threadKeyOf(row))?.state,
});

/** Whether a destination keeps one record for all rules. */
const keepsJoint = (destination: OpenDestination | Error | undefined) =>
  destination !== undefined && !(destination instanceof Error) && isJoint(destination.type);

/** One record for all rules ends with the last of their matches. What was tried is not held: others wait for it. */
function heldEnd(
  row: ClaimedDelivery,
  standing: readonly StandingRule[],
  { destinations }: DeliveryFacts,
  nowMs: number,
): Ended | undefined {
  if (standing.length === 0 || row.tries > 0 || !keepsJoint(destinations.get(row.destinationName))) return undefined;
  if (standing.some(({ id, delayed }) => id === row.ruleId && !delayed))
    return { row, status: "CANCELLED", error: "the rule matches again" };
  return { row, status: "PENDING", error: row.error, dueMs: nowMs + heldMs, awaited: standing };
}

/** Tells whether a message says of no member that it fires, though some do that something holds back. */
const saysEndsOnly = ({ occasion, told: { group } }: ClaimedDelivery) => occasion !== "clear" && group?.firing === 0;

/** Why a delivery is not to be made any more; undefined: it is. */
function needless(row: ClaimedDelivery, { rules, destinations }: DeliveryFacts): string | undefined {
  const rule = rules.get(row.ruleId);
  if (rule === undefined) return "the rule was deleted";
  if (!rule.enabled) return "the rule is not enabled any more";
  if (!destinations.has(row.destinationName)) return "the destination was deleted";
  if (!rule.destinationNames.includes(row.destinationName)) return "the rule does not name the destination any more";
  const destination = destinations.get(row.destinationName);
  if (
    destination !== undefined &&
    !(destination instanceof Error) &&
    saysEndsOnly(row) &&
    takesNoEnds(destination.type)
  )
    return "silenced alerts of its group still fire, so the incident goes on";
  return undefined;
}

/** The notification of a delivery that goes by itself; undefined: what it is about was looked for, and is not there. */
function prepareOne(row: ClaimedDelivery, judging: Judging, texts: DeliveryTexts, tenantId: string): Ready | undefined {
  const { verdicts, facts } = judging;
  const notification = notificationOf(row, facts, texts, tenantId);
  const destination = facts.destinations.get(row.destinationName);
  if (notification === undefined || destination === undefined) return undefined;
  const { match, ...state } = threadOf(row, facts);
  const verdict = verdicts.get(row.id);
  const stands = verdict?.send === true && (verdict.standing ?? []).length > 0;
  // What follows in a record of all rules, of which none stands, has nothing left to end; neither has what follows in a summary's.
  const isJointRecord = keepsJoint(destination) || row.told.summary !== undefined;
  const goesOn = stands || (!isJointRecord && facts.followed.has(row.id));
  const ends = row.occasion === "clear" && !goesOn;
  const over = summariesOver(row, judging);
  return {
    row,
    destination,
    notification: { ...notification, match },
    state,
    match,
    ends,
    others: [],
    summary: undefined,
    over,
  };
}

/** The notification of several deliveries of a destination that go as one. */
function prepareSummary(
  { row, others, told }: Summary,
  { facts, memberships }: Judging,
  texts: DeliveryTexts,
  tenantId: string,
): Ready | undefined {
  const notification = summaryNotification(row, told, facts, texts, tenantId);
  const destination = facts.destinations.get(row.destinationName);
  if (notification === undefined || destination === undefined) return undefined;
  const before = memberships.get(memberKey(row))?.find(({ summaryId }) => summaryId === told.id);
  const { match = String(row.createdMs), ...state } = before?.state ?? {};
  const summary = { id: told.id, sent: row.lost || before?.sent === true };
  return {
    row,
    destination,
    notification: { ...notification, match },
    state,
    match,
    ends: false,
    others,
    summary,
    over: [],
  };
}
