import type { Db, Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { paceOf } from "../kinds.ts";
import { claimDeliveries, type DueDestination, lockStates, type Quota, somethingDue, storeStates } from "./due.ts";
import {
  type Allowance,
  allowance,
  type Bounds,
  type DestinationState,
  freshState,
  heldBack,
  taken,
  untaken,
} from "./limits.ts";
import { disabledError, type Ending, endDeliveries } from "./record.ts";

/** How many one summary sums up. */
const summaryMax = 10_000;

/** What is to be taken of a destination now. */
export interface Plan {
  destination: DueDestination;
  bounds: Bounds;
  /** Locked; undefined where nothing bounds the destination. */
  state: DestinationState | undefined;
  allowed: Allowance;
  places: number;
}

const boundsOf = ({ kind, maxPerMinute }: DueDestination): Bounds => ({
  pace: kind === null ? undefined : paceOf(kind),
  maxPerMinute: maxPerMinute ?? 0,
});

const isBound = ({ pace, maxPerMinute }: Bounds, state: DestinationState | null) =>
  pace !== undefined || maxPerMinute > 0 || (state?.opened ?? 0) > 0;

/** What ends what waits for a destination; undefined: nothing does. */
function endOf(due: DueDestination, waitMsMax: number, nowMs: number): Ending | undefined {
  const { name: destination, kind, disabledReason, state, dueMs } = due;
  if (kind === null) return { destination, status: "CANCELLED", error: "the destination was deleted" };
  if (disabledReason !== "") {
    return { destination, status: "FAILED", error: disabledError(disabledReason ?? "") };
  }
  const dueBeforeMs = nowMs - waitMsMax;
  // An open breaker costs no attempt, so attempts alone would let them wait for ever.
  if ((state?.opened ?? 0) === 0 || dueMs >= dueBeforeMs) return undefined;
  const error = `the destination has not answered for ${waitMsMax / 1000} s`;
  return { destination, status: "FAILED", error, dueBeforeMs };
}

/**
 * Ends what waits for destinations that are gone or disabled, and what has waited too long for one that does not answer;
 * answers whether there may be more of it.
 */
export async function endWaiting(
  tx: Db,
  tenantId: string,
  due: readonly DueDestination[],
  waitMsMax: number,
  nowMs: number,
): Promise<boolean> {
  let more = false;
  for (const each of due) {
    const end = endOf(each, waitMsMax, nowMs);
    if (end !== undefined && (await endDeliveries(tx, tenantId, end, nowMs)) > 0) more = true;
  }
  return more;
}

/** How many may be taken of each of these destinations; locks the states of those that something bounds. */
export async function planned(
  tx: Db,
  tenantId: string,
  due: readonly DueDestination[],
  nowMs: number,
): Promise<Plan[]> {
  const bound = due.filter((each) => isBound(boundsOf(each), each.state)).map(({ name }) => name);
  const states = bound.length === 0 ? undefined : await lockStates(tx, tenantId, bound);
  return due.map((destination) => {
    const bounds = boundsOf(destination);
    const state = states?.get(destination.name);
    return { destination, bounds, state, allowed: allowance(state ?? freshState, bounds, nowMs), places: 0 };
  });
}

/** Takes what the plans allow, and notes it where destinations are bound. */
export async function claimed(tx: Db, tenantId: string, plans: readonly Plan[], leaseMs: number, nowMs: number) {
  const quotas = plans
    .filter(({ places }) => places > 0)
    .map(({ destination: { name }, allowed, places }): Quota => {
      return { name, max: allowed.summary ? summaryMax : places, all: allowed.summary };
    });
  const rows = quotas.length === 0 ? [] : await claimDeliveries(tx, tenantId, quotas, { nowMs, leaseMs });
  const byName = Map.groupBy(rows, ({ destinationName }) => destinationName);
  const changed = new Map<string, DestinationState>();
  for (const { destination, bounds, state, allowed } of plans) {
    const { name } = destination;
    if (state === undefined) continue;
    const count = byName.get(name)?.length ?? 0;
    if (count > 0) changed.set(name, taken(state, bounds, allowed.summary ? 1 : count, nowMs));
    else if (allowed.held && state.summaryMs === 0 && (await somethingDue(tx, tenantId, name, nowMs))) {
      changed.set(name, heldBack(state));
    }
  }
  await storeStates(tx, tenantId, changed);
  return rows;
}

/** Gives back what destinations were charged for what was claimed and is not tried; `tried` counts by their names. */
export async function giveBack(
  db: Sql,
  tenantId: string,
  plans: readonly Plan[],
  claims: readonly { destinationName: string }[],
  tried: ReadonlyMap<string, number>,
): Promise<void> {
  const byName = Map.groupBy(claims, ({ destinationName }) => destinationName);
  const spared = plans.flatMap(({ destination: { name }, bounds, state, allowed }) => {
    const charged = allowed.summary ? Math.min(1, byName.get(name)?.length ?? 0) : (byName.get(name)?.length ?? 0);
    const count = charged - (tried.get(name) ?? 0);
    return state === undefined || count <= 0 ? [] : [[name, { bounds, count }] as const];
  });
  if (spared.length === 0) return;
  const counts = new Map(spared);
  await transaction(db, async (tx) => {
    const states = await lockStates(tx, tenantId, [...counts.keys()].sort());
    for (const [name, state] of states) {
      const { bounds, count } = counts.get(name) as { bounds: Bounds; count: number };
      states.set(name, untaken(state, bounds, count));
    }
    await storeStates(tx, tenantId, states);
  });
}
