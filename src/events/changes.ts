import type { Db } from "../db/connect.ts";
import { lacksHome } from "../db/home-row.ts";
import { afterCommit } from "../db/transaction.ts";
import { failpoint } from "../failpoint.ts";
import { announceExpiry } from "./expiry.ts";
import { appendFeed, type FeedRow } from "./feed.ts";
import type { Instance, Occurrence, Texts, Transition } from "./lifecycle.ts";
import type { LockedEvents } from "./lock.ts";
import { writeInstances, writeKeptOpen, writeOccurrences } from "./write-changes.ts";

/** What an event is, whatever happens to it. */
export interface EventIdentity {
  id: Buffer;
  entityId: Buffer;
  name: string;
  /** What distinguishes it from others of its name on its entity; empty: nothing. */
  dedupKey: string;
  /** The labels of the alert that it is, as they were sent; absent: it is none, or its metadata hold them whole. */
  alertLabels?: Readonly<Record<string, string>>;
}

/** One change of an occurrence; `before` is undefined when the change opened it. */
export interface Change extends Transition {
  event: EventIdentity;
  /** The report behind the change; undefined when management, ageing or expiry caused it. */
  instance: Instance | undefined;
}

/** An open occurrence of which reports came that are no instances: watches hear nothing of what they change. */
export interface KeptOpen extends Pick<Occurrence, "number" | "expiresMs" | "keptOpenMs"> {
  event: EventIdentity;
  /** Absent: they are as before. */
  texts?: Texts;
}

/** Facts that come with changes. */
export interface Telling {
  /** tenant_state.rules_version, read after the transaction began. */
  rulesVersion: bigint;
  nowMs: number;
}

/** Functions that are called with changes. */
export interface ChangeHooks {
  /**
   * Within the transaction, after what the changes write was sent and under the locks of their events. May lock rows below
   * these events, then due_work. Changes are in the order in which they happened; those of one occurrence follow each
   * other, the `after` of one is the `before` of the next. What it throws fails the transaction. A transaction that runs
   * again calls it again; what it does beyond statements belongs into `afterCommit`.
   */
  onChanges?(tx: Db, tenantId: string, changes: readonly Change[], told: Telling): Promise<void>;
  /** Within the transaction, as `onChanges`: reports came of these events that only keep them open. */
  onKeptOpen?(tx: Db, tenantId: string, events: readonly EventIdentity[], told: Telling): Promise<void>;
  /** After the commit, and only when this process knows of it: the new row of the tenant's feed. */
  onStored?(tenantId: string, row: FeedRow): void;
}

/** Stores changes of occurrences in the caller's transaction. */
export type StoreChanges = (
  tx: Db,
  locked: Pick<LockedEvents, "tenantId" | "rulesVersion">,
  changes: readonly Change[],
  nowMs: number,
  more?: MoreToStore,
) => Promise<void>;

/** What is stored with changes. */
export interface MoreToStore {
  keptOpen?: readonly KeptOpen[];
  /** Notes in due_work what the changes make due. Called in the order of locks: below the events, before the rules decide; never without changes. */
  announce?(): Promise<void>;
}

/**
 * The only function that changes occurrences: for reports, management, ageing and expiry. Writes occurrences and their instances,
 * calls the hooks, and appends to the feed. The caller has locked the events (`lockEvents`), and only commits after this.
 * At most 1,000 changes at once; beyond them the caller's next transaction.
 * Statements may still be under way when it resolves: what they fail with fails the transaction.
 */
export function storingChanges({ onChanges, onKeptOpen, onStored }: ChangeHooks): StoreChanges {
  return async (tx, { tenantId, rulesVersion }, changes, nowMs, { keptOpen = [], announce } = {}) => {
    const facts = { rulesVersion: rulesVersion ?? 0n, nowMs };
    if (keptOpen.length > 0) {
      writeKeptOpen(tx, tenantId, keptOpen);
      await onKeptOpen?.(
        tx,
        tenantId,
        keptOpen.map(({ event }) => event),
        facts,
      );
    }
    if (changes.length === 0) return;
    // What follows is not waited for: it must not store nothing in silence.
    if (rulesVersion === undefined) throw lacksHome(tenantId);
    const written = [...writeOccurrences(tx, tenantId, changes), ...writeInstances(tx, tenantId, changes)];
    Promise.all(written).catch(() => undefined); // the transaction fails with it
    const expiresMs = firstExpiry(changes);
    if (expiresMs !== undefined) await announceExpiry(tx, tenantId, expiresMs, nowMs);
    await announce?.();
    if (onChanges !== undefined) await onChanges(tx, tenantId, changes, facts);
    failpoint("changes:told");
    const row = appendFeed(tx, tenantId, changes, nowMs);
    if (onStored !== undefined) afterCommit(tx, () => onStored(tenantId, row()));
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
