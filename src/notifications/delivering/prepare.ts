import type { Verdict } from "../deciding/recheck.ts";
import type { ThreadState } from "../kinds/kind.ts";
import { isJoint } from "../kinds.ts";
import type { Notification } from "../notification.ts";
import type { OpenDestination } from "../unseal-destination.ts";
import type { Share } from "./claim.ts";
import { notificationOf, summedUp } from "./compose.ts";
import { type DeliveryContext, threadKey } from "./delivery-context.ts";
import type { DueDelivery } from "./delivery-queue.ts";

/** A delivery that is to be tried. */
export interface Ready {
  readonly row: DueDelivery;
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
  readonly others: readonly DueDelivery[];
}

/** A delivery that is done without a try, or goes back until `dueMs`. */
export interface Ended {
  readonly row: DueDelivery;
  readonly status: "CANCELLED" | "FAILED" | "PENDING";
  readonly dueMs?: number;
  readonly error: string;
  /** What was kept of its subject, where a lost try of it may have reached its receiver. */
  readonly state?: ThreadState;
}

/** What is to be sent of what was claimed, and what is not. */
export interface Prepared {
  readonly ready: readonly Ready[];
  readonly ended: readonly Ended[];
}

const namedMax = 5;
/** What cannot be judged yet is looked at again after this. */
const backMs = 1000;
/** An end that waits until other rules' matches end is hastened by them; and is looked at after this, since rules change. */
const heldMs = 300_000;

/** Those whose texts are read: a summary names a few; those that are not needed are found among twice as many. */
export const shownRows = (shares: readonly Share[]): DueDelivery[] =>
  shares.flatMap(({ rows, allowed }) => (allowed.summary ? rows.slice(0, 2 * namedMax) : rows));

/** Makes notifications of what was claimed, as far as it is still needed. */
export function prepare(
  tenantId: string,
  shares: readonly Share[],
  verdicts: ReadonlyMap<string, Verdict>,
  context: DeliveryContext,
  nowMs: number,
): Prepared {
  const all = shares.map(({ rows, allowed }): Prepared => {
    const judged = rows.map((row) => judge(row, verdicts.get(row.id), context, nowMs));
    const needed = judged.flatMap((each) => ("ended" in each ? [] : each.row));
    const ended = judged.flatMap((each) => ("ended" in each ? each.ended : []));
    const groups = allowed.summary ? [needed] : needed.map((row) => [row]);
    const made = groups.map((group) => notify(group, verdicts, context, tenantId));
    return { ready: made.flatMap(({ ready }) => ready), ended: [...ended, ...made.flatMap((each) => each.ended)] };
  });
  return { ready: all.flatMap(({ ready }) => ready), ended: all.flatMap(({ ended }) => ended) };
}

/** A row as it is to be sent now, or why it is not. */
function judge(
  row: DueDelivery,
  verdict: Verdict = { send: true },
  context: DeliveryContext,
  nowMs: number,
): { row: DueDelivery } | { ended: Ended } {
  const reason = needless(row, context);
  if (reason !== undefined) return { ended: { row, status: "CANCELLED", error: reason } };
  if (verdict.send === "later") return { ended: { row, status: "PENDING", error: row.error, dueMs: nowMs + backMs } };
  const held = verdict.send && heldEnd(row, verdict.standing ?? [], context, nowMs);
  if (held) return { ended: held };
  if (verdict.send) return { row: verdict.told === undefined ? row : { ...row, told: verdict.told } };
  // A receiver that may have taken it is notified of its end.
  const lost = row.lost ? { state: threadOf(row, context) } : {};
  return { ended: { row, status: "CANCELLED", error: verdict.reason, ...lost } };
}

/** The thread of a delivery, which it begins if there is none: `match` then names its own. */
const threadOf = (row: DueDelivery, { threads }: DeliveryContext) => ({
  match: String(row.createdMs),
  ...threads.get(threadKey(row))?.state,
});

/** Whether a destination keeps one record for all rules. */
const keepsJoint = (destination: OpenDestination | Error | undefined) =>
  destination !== undefined && !(destination instanceof Error) && isJoint(destination.type);

/** One record for all rules ends with the last of their matches. What was tried is not held: others wait for it. */
function heldEnd(
  row: DueDelivery,
  standing: readonly string[],
  { destinations }: DeliveryContext,
  nowMs: number,
): Ended | undefined {
  if (standing.length === 0 || row.tries > 0 || !keepsJoint(destinations.get(row.destinationName))) return undefined;
  if (standing.includes(row.ruleId)) return { row, status: "CANCELLED", error: "the rule matches again" };
  return { row, status: "PENDING", error: row.error, dueMs: nowMs + heldMs };
}

/** Why a delivery is not to be made any more; undefined: it is. */
function needless(row: DueDelivery, { rules, destinations, threads }: DeliveryContext): string | undefined {
  const rule = rules.get(row.ruleId);
  if (rule === undefined) return "the rule was deleted";
  if (!rule.enabled) return "the rule is not enabled any more";
  if (!destinations.has(row.destinationName)) return "the destination was deleted";
  if (!rule.destinationNames.includes(row.destinationName)) return "the rule does not name the destination any more";
  if (row.occasion === "clear" && threads.get(threadKey(row))?.sent !== true)
    return "nothing was sent that could be cleared";
  return undefined;
}

/** One notification for these deliveries of a destination: of one, or the summary of several. */
function notify(
  rows: readonly DueDelivery[],
  verdicts: ReadonlyMap<string, Verdict>,
  context: DeliveryContext,
  tenantId: string,
): Prepared {
  const known = rows.flatMap((row) => {
    const notification = notificationOf(row, context, tenantId);
    return notification === undefined ? [] : [{ row, notification }];
  });
  const [first, ...rest] = known;
  const destination = context.destinations.get(rows[0]?.destinationName ?? "");
  if (first === undefined || destination === undefined) {
    return {
      ready: [],
      ended: rows.map((row) => ({ row, status: "CANCELLED", error: "what it is about was deleted" })),
    };
  }
  const { row, notification } = first;
  const { match, ...state } = threadOf(row, context);
  if (rows.length === 1) {
    const verdict = verdicts.get(row.id);
    const stands = verdict?.send === true && (verdict.standing ?? []).length > 0;
    // What follows in a record of all rules, of which none stands, has nothing left to end.
    const goesOn = stands || (!keepsJoint(destination) && context.followed.has(row.id));
    const ends = row.occasion === "clear" && !goesOn;
    const ready = { row, destination, notification: { ...notification, match }, state, match, ends, others: [] };
    return { ready: [ready], ended: [] };
  }
  const named = rest.slice(0, namedMax - 1).map((each) => each.notification);
  const others = rows.filter((other) => other !== row);
  const summary = summedUp([notification, ...named], rows.length);
  return { ready: [{ row, destination, notification: summary, state: {}, match, ends: false, others }], ended: [] };
}
