import type { Db, Sql } from "../../../db/connect.ts";
import type { EventIdentity } from "../../../events/fields.ts";
import type { JobKind } from "../../../jobs/worker.ts";
import type { StoredPoints } from "../../../metrics/store.ts";
import type { RulesMemory } from "../../rules/rules-memory.ts";
import type { TenantRules } from "../../rules/tenant-rules.ts";
import type { RulePart } from "../../silences/rules-version.ts";
import type { Wake } from "../batch.ts";
import type { ReadCurrentStates } from "../current-state.ts";

/** Per trigger name: why its data cannot be queried. */
export type Troubles = Record<string, string>;

/** Shows incoming data to sources, with the rules of that moment. */
export interface SourceHooks {
  /** In the transaction that stores them. */
  onPoints?(tx: Db, tenantId: string, rules: TenantRules, points: StoredPoints, nowMs: number): Promise<void>;
  /** After the commit: events were reported, also those that only keep occurrences open. */
  onEvents?(tenantId: string, rules: TenantRules, events: readonly Reported[], nowMs: number): void;
}

/** An event that was reported. */
export type Reported = Pick<EventIdentity, "name" | "entityId">;

/** A source at work in this process. */
export interface RunningSource extends SourceHooks {
  readonly kinds?: readonly JobKind[];
  /** Flushes last-seen times to the database for other servers. Also runs every 2 s. */
  flush?(nowMs: number): Promise<void>;
  /** After the last data were stored. */
  stop?(): Promise<void>;
}

/** Holds what a source is started with. */
export interface SourceOptions {
  readonly memory: RulesMemory;
  readonly wake: Wake;
  readonly sql: Sql;
  nowMs(): number;
}

/** Runs a source of other data than events. `S` is its member of the oneof of `TriggerType`. */
export interface DataSource<S> {
  /** Re-evaluates the open matches of this source. Absent: the stored match is used. */
  readonly currentStates?: ReadCurrentStates;
  /** In the transaction that changes rules or triggers of a tenant. */
  onRulesChange?(tx: Db, tenantId: string, part: RulePart): Promise<void>;
  /** In the transaction that changes what a trigger looks at, within the source. */
  onChange?(tx: Db, tenantId: string, triggerName: string, before: S, after: S): Promise<void>;
  /** Reads, per trigger name, why its data cannot be queried. */
  troubles?(db: Db, tenantId: string): Promise<Troubles>;
  start?(options: SourceOptions): RunningSource;
}
