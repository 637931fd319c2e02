import type { Fragment } from "postgres";
import { bigintArray, byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import type { EntityRow } from "./messages.ts";
import { storedRow } from "./stored-row.ts";

/** The production state of an entity whose model names none. */
const PRODUCTION = 1000n;
/** The production state of an entity that is out of use. */
const DECOMMISSIONED = -1n;
/** The priority of an entity whose model names none. */
const PRIORITY = 3n;

/** The number that metadata give under a key, where it is whole and no double misses it; else null. */
export function metadataNumber(metadata: Record<string, unknown>, key: "productionState" | "priority"): bigint | null {
  const value = metadata[key];
  return Number.isSafeInteger(value) ? BigInt(value as number) : null;
}

/** The production state that counts: that of a maintenance window, else the model's. */
export function productionState(row: Pick<EntityRow, "model_production_state" | "window_production_state">): bigint {
  return row.window_production_state ?? row.model_production_state ?? PRODUCTION;
}

/** The same in SQL, of a row of `entities`; `ofWindows`: what windows give it, null where they give none. */
export function productionStateSql(db: Db, ofWindows: Fragment = db`window_production_state`): Fragment {
  return db`coalesce(${ofWindows}, model_production_state, ${PRODUCTION}::int8)`;
}

/** The priority of an entity. */
export function priority(row: Pick<EntityRow, "priority">): bigint {
  return row.priority ?? PRIORITY;
}

/** The same in SQL. */
export function prioritySql(db: Db): Fragment {
  return db`coalesce(priority, ${PRIORITY}::int8)`;
}

/** What a window does to one entity. */
export interface WindowState {
  id: Buffer;
  /** The state that counts from now on; null: none, so that the model's counts. */
  windowState: bigint | null;
  /** A state to take the model's place, until a model names another than the one before it. */
  modelState?: bigint;
}

/** An entity whose row is locked. */
export interface LockedState {
  id: Buffer;
  /** Out of use, as its own state has it, whatever a window says. */
  decommissioned: boolean;
  deleted: boolean;
}

/** Whether a row of `entities` is out of use, as its own state has it. */
export function isDecommissionedSql(db: Db): Fragment {
  return db`coalesce(model_production_state = ${DECOMMISSIONED}, false)`;
}

/** Locks these entities, in the order of ids, until the transaction ends: before anything is written that depends on their windows. */
export async function lockProductionStates(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<LockedState[]> {
  return await tx<LockedState[]>`
    select id, ${isDecommissionedSql(tx)} as decommissioned,
      deleted_ms is not null as deleted
    from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[])
    order by id for no key update`;
}

/**
 * Sets what windows give to entities, in the transaction that holds their locks; one statement however many there are.
 * Answers the ids that it wrote; what stands already is not written. May be repeated. Each id stands once.
 */
export async function setWindowStates(
  tx: Db,
  tenantId: string,
  states: readonly WindowState[],
  nowMs: number,
): Promise<Buffer[]> {
  const rows = await tx<{ id: Buffer }[]>`
    insert into entities as stored (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms,
      window_production_state, model_production_state)
    select home.tenant_id, sent.id, name, dimensions, metadata, created_ms, ${BigInt(nowMs)}, 0, window_state, model_state
    from ${home(tx, tenantId)}, unnest(
      ${byteaArray(states.map(({ id }) => id))}::bytea[],
      ${bigintArray(states.map(({ windowState }) => windowState))}::bigint[],
      ${bigintArray(states.map(({ modelState }) => modelState ?? null))}::bigint[]
    ) as sent (id, window_state, model_state)
      ${storedRow(tx, tenantId)}
    on conflict (tenant_id, id) do update set
      window_production_state = excluded.window_production_state,
      model_production_state = coalesce(excluded.model_production_state, stored.model_production_state),
      updated_ms = excluded.updated_ms
      where (stored.window_production_state, stored.model_production_state) is distinct from
        (excluded.window_production_state, coalesce(excluded.model_production_state, stored.model_production_state))
    returning id`;
  return rows.map(({ id }) => id);
}
