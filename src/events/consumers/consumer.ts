import type { Db } from "../../db/connect.ts";
import type { Fact } from "../facts.ts";

/** What a consumer has made of facts. */
export interface Consumed {
  /** How many it took, the first of them; 0: they are shown again soon. */
  readonly taken: number;
  /** The version of the tenant's rules with which nothing is to be consumed any more; absent: something is. */
  readonly idleAt?: bigint;
}

/** When facts are consumed. */
export interface Moment {
  /** When the first of them was stored, ms. */
  readonly storedMs: number;
  readonly nowMs: number;
  /** The tenant's rules had this version after the last of them was stored; absent: nobody has looked since. */
  readonly rulesVersion?: bigint;
}

/** Reads the feeds of tenants, after the commits. */
export interface Consumer {
  /** Names its cursors: never changed. */
  readonly name: string;
  /** Whether a tenant without a cursor needs one, by what is in memory; when that is not known it does. */
  wants(tenantId: string, rulesVersion: bigint): boolean;
  /**
   * Consumes facts in their order, in the transaction that moves the cursor behind them; it holds the cursor's lock, and of facts that are
   * read as they are now those of their events. A transaction that runs again calls it again.
   */
  batch(tx: Db, tenantId: string, facts: readonly Fact[], moment: Moment): Promise<Consumed>;
}

/** The jobs that see to it that a consumer reads what was stored, whatever becomes of the process that has stored it. */
export const feedKind = (name: string) => `${name}.feed`;
/** The one job of a tenant. */
export const feedJob = "feed";
