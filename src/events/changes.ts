import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import { paced } from "../event-loop.ts";
import { failpoint } from "../failpoint.ts";
import { runBy } from "../jobs/queue.ts";
import { type Consumer, feedJob, feedKind } from "./consumers/consumer.ts";
import { openCursor } from "./consumers/cursors.ts";
import { announceExpiry } from "./expiry.ts";
import { encodeFacts, factsOf } from "./facts.ts";
import { appendFeed, type FeedRow } from "./feed.ts";
import type { EventIdentity } from "./fields.ts";
import type { Instance, Transition } from "./lifecycle.ts";
import type { LockedEvents } from "./lock.ts";
import { writeInstances, writeOccurrences } from "./write-changes.ts";

/** One change of an occurrence; `before` is undefined when the change opened it. */
export interface Change extends Transition {
  event: EventIdentity;
  /** The report behind the change; undefined when management, ageing or expiry caused it. */
  instance: Instance | undefined;
}

/** What reports that are no instances changed of an open occurrence: watches hear nothing of it. */
export type KeptOpen = Omit<Change, "instance">;

/** Functions that are called with changes. */
export interface ChangeHooks {
  /** What reads the feed: while one of them has a cursor in it, or wants one, the rows have facts. */
  readonly consumers?: readonly Pick<Consumer, "name" | "wants">[];
  /** Whether a server of 0.3 may read the feed: it is written as that one does. Absent: none. */
  oldForm?(): boolean;
  /** After the commit, as far as this process knows of it: reports came of these events that only keep them open. */
  onKeptOpen?(tenantId: string, events: readonly EventIdentity[], told: { rulesVersion: bigint; nowMs: number }): void;
  /** After the commit, and only when this process knows of it: the new rows of the tenant's feed. */
  onStored?(tenantId: string, rows: readonly FeedRow[]): void;
}

/** Stores changes of occurrences in the caller's transaction. */
export type StoreChanges = (
  tx: Db,
  locked: Omit<LockedEvents, "ids">,
  changes: readonly Change[],
  nowMs: number,
  more?: MoreToStore,
) => Promise<void>;

/** What is stored with changes. */
export interface MoreToStore {
  keptOpen?: readonly KeptOpen[];
  /** Notes in due_work what the changes make due. Called in the order of locks: below the events; never without changes. */
  announce?(): Promise<void>;
}

/** A process that does not read what it has stored within this time, ms, is not waited for. */
const lookMs = 1000;

/**
 * The only function that changes occurrences: for reports, management, ageing and expiry. Writes occurrences and their instances,
 * and appends to the feed, with what its consumers look at. The caller has locked the events (`lockEvents`), and only commits after this.
 * At most 1,000 changes at once; beyond them the caller's next transaction.
 * Statements may still be under way when it resolves: what they fail with fails the transaction.
 */
export function storingChanges({
  consumers = [],
  oldForm: isOldForm,
  onKeptOpen,
  onStored,
}: ChangeHooks): StoreChanges {
  return async (tx, { tenantId, rulesVersion, consumers: known }, changes, nowMs, { keptOpen = [], announce } = {}) => {
    const written = [
      ...writeOccurrences(tx, tenantId, [...changes, ...keptOpen]),
      ...writeInstances(tx, tenantId, changes),
    ];
    Promise.all(written).catch(() => undefined); // the transaction fails with it
    if (keptOpen.length > 0 && onKeptOpen !== undefined) {
      const events = keptOpen.map(({ event }) => event);
      afterCommit(tx, () => onKeptOpen(tenantId, events, { rulesVersion: rulesVersion ?? 0n, nowMs }));
    }
    if (changes.length === 0) return;
    // What follows is not waited for: it must not store nothing in silence.
    if (rulesVersion === undefined) throw new Error(`the tenant ${tenantId} has no row in tenant_state`);
    const reading = consumers.filter(({ name, wants }) => {
      return known.includes(name) || wants(tenantId, rulesVersion);
    });
    const facts = reading.length > 0 ? factsOf(changes) : [];
    const oldForm = isOldForm?.() ?? false;
    const texts = await encodeFacts(facts, paced(undefined, tenantId), oldForm);
    for (const { name } of reading) if (!known.includes(name)) await openCursor(tx, tenantId, name);
    const expiresMs = firstExpiry(changes);
    if (expiresMs !== undefined) await announceExpiry(tx, tenantId, expiresMs, nowMs);
    await announce?.();
    for (const { name } of reading) await runBy(tx, { tenantId, kind: feedKind(name) }, feedJob, nowMs + lookMs, nowMs);
    failpoint("changes:told");
    const rows = appendFeed(tx, tenantId, { changes, facts, texts, oldForm }, nowMs);
    if (onStored !== undefined) afterCommit(tx, () => onStored(tenantId, rows()));
  };
}

/** When the first occurrence expires that did not do so by then already; undefined: none. */
function firstExpiry(changes: readonly Change[]): bigint | undefined {
  let first: bigint | undefined;
  for (const { before, after } of changes) {
    const { expiresMs, endMs } = after;
    if (expiresMs === null || endMs !== null) continue;
    const known =
      before !== undefined && before.endMs === null && before.expiresMs !== null && before.expiresMs <= expiresMs;
    if (!known && (first === undefined || expiresMs < first)) first = expiresMs;
  }
  return first;
}
