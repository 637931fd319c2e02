import type { Fragment } from "postgres";
import { bigintArray, byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { EntityRow } from "./messages.ts";

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

/** The same in SQL, of a row of `entities`. */
export function productionStateSql(db: Db): Fragment {
  return db`coalesce(window_production_state, model_production_state, ${PRODUCTION}::int8)`;
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
  /** A state to take the model's place, until a model that differs from the last one names another. */
  modelState?: bigint;
}

/**
 * Sets what windows give to living entities, in the caller's transaction; one statement however many there are, which locks
 * them in the order of ids, so callers that have very many cut them into portions. Decommissioned ones only with `force`.
 * Answers the ids that it wrote; what stands already is not written. May be repeated. Each id stands once.
 */
export async function setWindowStates(
  tx: Db,
  tenantId: string,
  states: readonly WindowState[],
  { nowMs, force = false }: { nowMs: number; force?: boolean },
): Promise<Buffer[]> {
  const rows = await tx<{ id: Buffer }[]>`
    with changed as (
      select id, window_state, model_state
      from unnest(
        ${byteaArray(states.map(({ id }) => id))}::bytea[],
        ${bigintArray(states.map(({ windowState }) => windowState))}::bigint[],
        ${bigintArray(states.map(({ modelState }) => modelState ?? null))}::bigint[]
      ) as sent (id, window_state, model_state)
    ), locked as materialized (
      select entities.id, window_state, coalesce(model_state, model_production_state) as model_state
      from changed join entities using (id)
      where tenant_id = ${tenantId} and deleted_ms is null
        and (${force}::boolean or coalesce(window_production_state, model_production_state, ${PRODUCTION}) <> ${DECOMMISSIONED})
        and (window_production_state, model_production_state)
          is distinct from (window_state, coalesce(model_state, model_production_state))
      order by entities.id for no key update of entities
    )
    update entities set
      window_production_state = locked.window_state, model_production_state = locked.model_state, updated_ms = ${BigInt(nowMs)}
    from locked
    where entities.tenant_id = ${tenantId} and entities.id = locked.id
    returning entities.id`;
  return rows.map(({ id }) => id);
}
