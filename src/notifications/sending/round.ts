import type { Keyring } from "../../credentials/keyring.ts";
import type { Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { failpoint } from "../../failpoint.ts";
import type { Notification } from "../notification.ts";
import type { Verdict, Waiting } from "../still-matching.ts";
import { type Ended, needless, notificationOf, type Ready, summedUp } from "./compose.ts";
import { type DueDelivery, dueDestinations } from "./due.ts";
import { type Facts, readFacts, threadKey } from "./facts.ts";
import type { Places } from "./places.ts";
import { claimed, endWaiting, giveBack, type Plan, planned } from "./plan.ts";
import { record } from "./record.ts";
import { backResult } from "./result.ts";

/** Judges deliveries right before they are tried; what it does not name is to be sent. */
export type StillMatching = (
  tenantId: string,
  rows: readonly Waiting[],
  nowMs: number,
) => Promise<ReadonlyMap<string, Verdict>>;

export interface RoundOptions {
  readonly keyring: Keyring;
  readonly places: Places;
  readonly leaseMs: number;
  /** How long deliveries wait for a destination that does not answer. */
  readonly waitMsMax: number;
  /** How many of one destination a look takes: a place that is taken for nothing is kept from others meanwhile. */
  readonly lookMax: number;
  readonly stillMatching: StillMatching;
}

/** What one look at a tenant's deliveries has come to. */
export interface Round {
  /** Each holds a place, which the caller gives back. */
  readonly ready: readonly Ready[];
  /** Done without a try; they hold no place. */
  readonly ended: readonly Ended[];
  /** There may be more that is due: another look is worth it. */
  readonly more: boolean;
  /** There was no place for some. */
  readonly crowded: boolean;
  /** When a destination may be tried again that may not now, ms; Infinity when there is none. */
  readonly againMs: number;
  /** Destinations that something is noted of: also what goes well there is to be noted. */
  readonly suspects: ReadonlySet<string>;
}

const namedMax = 5;
/** After an error of ours, and for what cannot be judged yet. */
const backMs = 1000;

/** What was taken, with all that it tells. */
interface Taken {
  rows: readonly DueDelivery[];
  facts: Facts | undefined;
  plans: readonly Plan[];
  /** Something was ended whose destination takes nothing any more. */
  over: boolean;
}

/**
 * Takes deliveries of a tenant that are due now, as many as there are places and as their destinations allow, and reads
 * what they tell; nothing is locked afterwards. May be repeated: what it took is the caller's for the time of a lease.
 */
export async function takeRound(db: Sql, tenantId: string, options: RoundOptions, nowMs: number): Promise<Round> {
  const { places } = options;
  let plans: readonly Plan[] = [];
  const release = () => {
    for (const { destination, places: count } of plans) places.free(tenantId, destination.name, count);
    plans = [];
  };
  try {
    const taken = await transaction(db, async (tx): Promise<Taken> => {
      release();
      // What is lost of it in a crash of the database is claimed again.
      const [, due] = await Promise.all([
        tx.unsafe("set local synchronous_commit = off"),
        dueDestinations(tx, tenantId, nowMs),
      ]);
      const over = await endWaiting(tx, tenantId, due, options.waitMsMax, nowMs);
      const living = due.filter((each) => each.kind !== null && each.disabledReason === "");
      plans = await planned(tx, tenantId, living, nowMs);
      for (const plan of plans) {
        const wanted = plan.allowed.summary ? 1 : Math.min(plan.allowed.max, options.lookMax);
        plan.places = places.take(tenantId, plan.destination.name, wanted);
      }
      const rows = await claimed(tx, tenantId, plans, options.leaseMs, nowMs);
      if (rows.length === 0) return { rows, facts: undefined, plans, over };
      const facts = await readFacts(tx, tenantId, rows, shown(rows, bundlesOf(plans)), options.keyring);
      return { rows, facts, plans, over };
    });
    failpoint("deliveries:claimed");
    const verdicts = await judgedRows(db, tenantId, taken.rows, options, nowMs);
    const sortedOut = sorted(tenantId, taken, verdicts, nowMs);
    const tried = Map.groupBy(sortedOut.ready, ({ row }) => row.destinationName);
    const counts = new Map([...tried].map(([name, { length }]) => [name, length]));
    // Without it they are charged as if they were tried.
    await giveBack(db, tenantId, taken.plans, taken.rows, counts).catch(() => undefined);
    return summary(tenantId, taken, sortedOut, options);
  } catch (error) {
    release();
    throw error;
  }
}

function toWaiting(row: DueDelivery): Waiting {
  const { id, ruleId, occasion, createdMs, dueMs, tries, told } = row;
  const subject = {
    key: row.subject,
    entityId: row.entityId ?? Buffer.alloc(0),
    ...(row.eventId !== null && { eventId: row.eventId }),
    ...(row.number !== null && { number: row.number }),
    ...(row.metricName !== null && { metricName: row.metricName }),
  };
  return { id, ruleId, subject, occasion, createdMs, dueMs, tries, told };
}

/** @throws what `stillMatching` does; the deliveries are then given back */
async function judgedRows(
  db: Sql,
  tenantId: string,
  rows: readonly DueDelivery[],
  { stillMatching }: RoundOptions,
  nowMs: number,
): Promise<ReadonlyMap<string, Verdict>> {
  if (rows.length === 0) return new Map();
  try {
    return await stillMatching(tenantId, rows.map(toWaiting), nowMs);
  } catch (error) {
    const back = rows.map((row) => ({ ...backResult(row), dueMs: nowMs + backMs }));
    await record(db, tenantId, back, new Set(), nowMs).catch(() => undefined); // else their leases end
    throw error;
  }
}

const bundlesOf = (plans: readonly Plan[]): ReadonlySet<string> =>
  new Set(plans.filter(({ allowed }) => allowed.summary).map(({ destination }) => destination.name));

/** Those whose texts are read: a summary names a few; those that are not to be told are found among twice as many. */
function shown(rows: readonly DueDelivery[], bundles: ReadonlySet<string>): DueDelivery[] {
  const seen = new Map<string, number>();
  return rows.filter(({ destinationName: name }) => {
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return !bundles.has(name) || count <= 2 * namedMax;
  });
}

/** What is to be sent of what was taken, and what is not. */
function sorted(
  tenantId: string,
  { rows, facts, plans }: Taken,
  verdicts: ReadonlyMap<string, Verdict>,
  nowMs: number,
): Pick<Round, "ready" | "ended"> {
  const [ready, ended]: [Ready[], Ended[]] = [[], []];
  if (facts === undefined) return { ready, ended };
  const wanted = rows.flatMap((row) => {
    const verdict: Verdict = verdicts.get(row.id) ?? { send: true };
    const over = needless(row, facts);
    if (over !== undefined) ended.push(over);
    else if (verdict.send === "later") ended.push({ row, status: "PENDING", error: row.error, dueMs: nowMs + backMs });
    else if (!verdict.send) ended.push({ row, status: "CANCELLED", error: verdict.reason, ...lostTry(row, facts) });
    else return [verdict.told === undefined ? row : { ...row, told: verdict.told }];
    return [];
  });
  const bundles = bundlesOf(plans);
  for (const [name, own] of Map.groupBy(wanted, ({ destinationName }) => destinationName)) {
    if (bundles.has(name) && own.length > 1) bundle(own, facts, tenantId, ready, ended);
    else for (const row of own) single(row, facts, tenantId, ready, ended);
  }
  return { ready, ended };
}

/** A receiver that may have taken it is told that it is over. */
const lostTry = (row: DueDelivery, { threads }: Facts) =>
  row.lost ? { state: threads.get(threadKey(row))?.state ?? {} } : {};

function single(row: DueDelivery, facts: Facts, tenantId: string, ready: Ready[], ended: Ended[]): void {
  const notification = notificationOf(row, facts, tenantId);
  const destination = facts.destinations.get(row.destinationName);
  if (notification === undefined || destination === undefined) {
    ended.push({ row, status: "CANCELLED", error: "what it is about was deleted" });
  } else {
    ready.push({ row, destination, notification, state: facts.threads.get(threadKey(row))?.state ?? {}, others: [] });
  }
}

function bundle(rows: readonly DueDelivery[], facts: Facts, tenantId: string, ready: Ready[], ended: Ended[]): void {
  const known = rows.flatMap((row) => {
    const notification = notificationOf(row, facts, tenantId);
    return notification === undefined ? [] : [{ row, notification }];
  });
  const [first] = known;
  const destination = facts.destinations.get(rows[0]?.destinationName ?? "");
  if (first === undefined || destination === undefined) {
    for (const row of rows) ended.push({ row, status: "CANCELLED", error: "what it is about was deleted" });
    return;
  }
  const all = known.slice(0, namedMax).map(({ notification }) => notification) as [Notification, ...Notification[]];
  const others = rows.filter((row) => row !== first.row);
  ready.push({ row: first.row, destination, notification: summedUp(all, rows.length), state: {}, others });
}

/** Gives back the places that nothing is sent from, and says what is left. */
function summary(
  tenantId: string,
  { rows, plans, over }: Taken,
  { ready, ended }: Pick<Round, "ready" | "ended">,
  { places, lookMax }: RoundOptions,
): Round {
  const used = Map.groupBy(ready, ({ row }) => row.destinationName);
  let againMs = Number.POSITIVE_INFINITY;
  let crowded = false;
  for (const { destination, allowed, places: got } of plans) {
    const unused = got - (used.get(destination.name)?.length ?? 0);
    if (unused > 0) places.free(tenantId, destination.name, unused);
    if (allowed.max === 0) againMs = Math.min(againMs, allowed.againMs);
    else if (got < Math.min(allowed.max, lookMax)) crowded = true;
  }
  const suspects = plans.flatMap(({ destination: { name, state } }) =>
    state !== null && (state.failures > 0 || state.opened > 0) ? [name] : [],
  );
  const counts = Map.groupBy(rows, ({ destinationName }) => destinationName);
  const full = plans.some(
    ({ destination: { name }, places: got }) => got > 0 && (counts.get(name)?.length ?? 0) >= got,
  );
  return { ready, ended, more: over || full, crowded, againMs, suspects: new Set(suspects) };
}
