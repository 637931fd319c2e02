import type { Db, Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { rateLimitOf } from "../kinds/kinds.ts";
import {
  type ClaimedDelivery,
  claimDeliveries,
  type DueDestination,
  dueDestinations,
  lockDestinationStates,
  somethingDue,
  storeDestinationStates,
} from "./delivery-queue.ts";
import {
  type Allowance,
  allowance,
  type DestinationBounds,
  type DestinationState,
  freshState,
  heldBack,
  taken,
  untaken,
} from "./destination-state.ts";
import { countFailed, disabledError, type Ending, endDeliveries } from "./result-statements.ts";
import type { SendSlots } from "./send-slots.ts";

/** How many one summary sums up. */
const summaryMax = 10_000;

export interface ClaimOptions {
  readonly slots: SendSlots;
  readonly leaseMs: number;
  /** How long deliveries wait for a destination that does not answer. */
  readonly waitMsMax: number;
  /** How many of one destination a look takes: a slot that is taken for nothing is kept from others meanwhile. */
  readonly lookMax: number;
}

/** What one look takes of a destination. */
export interface Share {
  readonly name: string;
  readonly bounds: DestinationBounds;
  readonly allowed: Allowance;
  /** As it was locked; undefined where nothing bounds the destination. */
  readonly state: DestinationState | undefined;
  /** The slots that it holds. */
  readonly slots: number;
  /** How many are sent at most. Fewer rows are claimed, but for a summary: all that wait. */
  readonly places: number;
  readonly rows: readonly ClaimedDelivery[];
}

/** Deliveries of a tenant that are the caller's for the time of a lease, and the slots that are held for them. */
export interface Claim {
  readonly tenantId: string;
  readonly shares: readonly Share[];
  /** There may be more that is due: another look is worth it. */
  readonly more: boolean;
  /** There was no slot for some. */
  readonly crowded: boolean;
  /** When a destination may be tried again that may not now, ms; Infinity when there is none. */
  readonly againMs: number;
  /** Destinations that something is noted of: also what goes well there is to be noted. */
  readonly suspects: ReadonlySet<string>;
}

const boundsOf = ({ kind, maxPerMinute }: DueDestination): DestinationBounds => ({
  pace: kind === null ? undefined : rateLimitOf(kind),
  maxPerMinute: maxPerMinute ?? 0,
});

function isBounded(due: DueDestination): boolean {
  const { pace, maxPerMinute } = boundsOf(due);
  return pace !== undefined || maxPerMinute > 0 || (due.state?.opened ?? 0) > 0;
}

const wanted = ({ max }: Allowance, lookMax: number) => Math.min(max, lookMax);

/**
 * Takes deliveries of a tenant that are due now, as many as there are slots and as their destinations allow; nothing is
 * locked afterwards. May be repeated.
 */
export async function claimDue(db: Sql, tenantId: string, options: ClaimOptions, nowMs: number): Promise<Claim> {
  const { slots, lookMax } = options;
  const due = await dueDestinations(db, tenantId, nowMs);
  if (due.length === 0)
    return {
      tenantId,
      shares: [],
      more: false,
      crowded: false,
      againMs: Number.POSITIVE_INFINITY,
      suspects: new Set(),
    };
  // By states that are not locked yet: under the lock it may be less.
  const held = new Map(
    due.filter(isLiving).map((each) => {
      const count = wanted(allowance(each.state ?? freshState, boundsOf(each), nowMs), lookMax);
      return [each.name, slots.take(tenantId, each.name, count)];
    }),
  );
  try {
    const run = (tx: Db) => take(tx, tenantId, due, held, options, nowMs);
    // Where nothing ends and nothing bounds a destination, it is one statement.
    const isOne = due.every((each) => !isBounded(each) && endOf(each, options.waitMsMax, nowMs) === undefined);
    const { ended, shares } = await (isOne ? run(db) : transaction(db, run));
    const full = shares.some(({ rows, slots }) => slots > 0 && rows.length >= slots);
    const waits = shares.flatMap(({ allowed }) => (allowed.max === 0 ? [allowed.againMs] : []));
    const suspects = due.flatMap(({ name, state }) =>
      state && (state.failures > 0 || state.opened > 0) ? [name] : [],
    );
    return {
      tenantId,
      shares,
      more: ended || full,
      crowded: shares.some(({ allowed, slots }) => slots < wanted(allowed, lookMax)),
      againMs: Math.min(...waits, Number.POSITIVE_INFINITY),
      suspects: new Set(suspects),
    };
  } catch (error) {
    for (const [name, count] of held) slots.free(tenantId, name, count);
    throw error;
  }
}

const isLiving = ({ kind, disabledReason }: DueDestination) => kind !== null && disabledReason === "";

/** Ends what waits in vain, and takes what the destinations allow, which are charged for it. */
async function take(
  tx: Db,
  tenantId: string,
  due: readonly DueDestination[],
  held: ReadonlyMap<string, number>,
  { waitMsMax, leaseMs }: ClaimOptions,
  nowMs: number,
): Promise<{ ended: boolean; shares: Share[] }> {
  const ended = await endWaiting(tx, tenantId, due, waitMsMax, nowMs);
  const living = due.filter(isLiving);
  const bound = living.flatMap((each) => (isBounded(each) ? [each.name] : []));
  const states = bound.length === 0 ? undefined : await lockDestinationStates(tx, tenantId, bound);
  const plans = living.map((each) => {
    const { name } = each;
    const [bounds, state] = [boundsOf(each), states?.get(name)];
    const allowed = allowance(state ?? freshState, bounds, nowMs);
    const slots = held.get(name) ?? 0;
    return { name, bounds, state, allowed, slots, places: Math.min(slots, allowed.max) };
  });
  const quotas = plans.flatMap(({ name, allowed: { summary: all }, places }) =>
    places > 0 ? [{ name, max: all ? summaryMax : places, all }] : [],
  );
  const claimed = quotas.length === 0 ? [] : await claimDeliveries(tx, tenantId, quotas, { nowMs, leaseMs });
  const byName = Map.groupBy(claimed, ({ destinationName }) => destinationName);
  const shares = plans.map((plan) => ({ ...plan, rows: byName.get(plan.name) ?? [] }));
  await charge(tx, tenantId, shares, nowMs);
  return { ended, shares };
}

/** How many a destination is charged for until it is known how many are tried: a summary counts as one. */
const charged = ({ places, rows }: Share) => Math.min(places, rows.length);

async function charge(tx: Db, tenantId: string, shares: readonly Share[], nowMs: number): Promise<void> {
  const changed = new Map<string, DestinationState>();
  for (const share of shares) {
    const { name, bounds, state, allowed } = share;
    const count = charged(share);
    if (state === undefined) continue;
    if (count > 0) changed.set(name, taken(state, bounds, count, nowMs));
    else if (allowed.held && state.summaryMs === 0 && (await somethingDue(tx, tenantId, name, nowMs)))
      changed.set(name, heldBack(state));
  }
  await storeDestinationStates(tx, tenantId, changed);
}

/**
 * Gives back the slots that nothing is sent from, and what destinations were charged for what is not tried; `tried` counts
 * by their names.
 */
export async function giveBack(
  db: Sql,
  { tenantId, shares }: Claim,
  slots: SendSlots,
  tried: ReadonlyMap<string, number>,
): Promise<void> {
  const spared = new Map<string, { bounds: DestinationBounds; count: number }>();
  for (const share of shares) {
    const { name, bounds, state } = share;
    const used = tried.get(name) ?? 0;
    slots.free(tenantId, name, share.slots - used);
    const count = charged(share) - used;
    if (state !== undefined && count > 0) spared.set(name, { bounds, count });
  }
  if (spared.size === 0) return;
  await transaction(db, async (tx) => {
    const states = await lockDestinationStates(tx, tenantId, [...spared.keys()].sort());
    for (const [name, state] of states) {
      const { bounds, count } = spared.get(name) as { bounds: DestinationBounds; count: number };
      states.set(name, untaken(state, bounds, count));
    }
    await storeDestinationStates(tx, tenantId, states);
  });
}

/**
 * Ends what waits for destinations that are deleted or disabled, and what has waited too long for one that does not answer;
 * returns whether there may be more of it.
 */
async function endWaiting(
  tx: Db,
  tenantId: string,
  due: readonly DueDestination[],
  waitMsMax: number,
  nowMs: number,
): Promise<boolean> {
  let more = false;
  for (const each of due) {
    const end = endOf(each, waitMsMax, nowMs);
    const ended = end === undefined ? 0 : await endDeliveries(tx, tenantId, end, nowMs);
    if (ended === 0) continue;
    more = true;
    if (end?.status === "FAILED") await countFailed(tx, tenantId, new Array<string>(ended).fill(each.name), nowMs);
  }
  return more;
}

/** What ends what waits for a destination; undefined: nothing does. */
function endOf(due: DueDestination, waitMsMax: number, nowMs: number): Ending | undefined {
  const { name: destination, kind, disabledReason, state, dueMs } = due;
  if (kind === null) return { destination, status: "CANCELLED", error: "the destination was deleted" };
  if (disabledReason !== "") return { destination, status: "FAILED", error: disabledError(disabledReason ?? "") };
  const dueBeforeMs = nowMs - waitMsMax;
  // An open breaker costs no attempt, so attempts alone would let them wait for ever.
  if ((state?.opened ?? 0) === 0 || dueMs >= dueBeforeMs) return undefined;
  const error = `the destination has not answered for ${waitMsMax / 1000} s`;
  return { destination, status: "FAILED", error, dueBeforeMs };
}
