import type { Fragment } from "postgres";
import type { Columns } from "../clause/field.ts";
import { toMatching } from "../clause/to-sql.ts";
import { bigintArray, byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { matchingIds, splitIds } from "../entities/batched-writes.ts";
import { childIds } from "../entities/children.ts";
import { entityResolver } from "../entities/fields.ts";
import { lockProductionStates, productionStateSql, setWindowStates } from "../entities/production-state.ts";
import type { Job } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { tenantNameOf } from "../tenants/tenant.ts";
import type { WindowHooks } from "./hooks.ts";
import { storedClause, type WindowRow } from "./messages.ts";
import { readWindow } from "./rows.ts";

/** The jobs that bring the entities of windows up to date, by the windows' ids. */
export const membersKind = "maintenance.members";

/** Entities a transaction: few enough that no other waits for their locks long. */
const portion = 500;

/*
 * A window's entities follow in portions, each a transaction: first those of runs that are over leave, then the entities
 * of the run that goes on are found, and enter; last those leave which a change of the window has left out. There is one
 * such job a window. Whatever happens to the window meanwhile replaces the job, so that a portion at work is undone by its
 * fence and all starts again with what the window is then.
 */

/** How far a job has come: absent until the entities of this version of the window have been found. */
interface Course {
  version?: string;
}

interface Running {
  nowMs: number;
  hooks: WindowHooks;
}

const keyOf = (id: Buffer) => id.toString("latin1");

/** The jobs of the entities of windows. */
export function membersJob(hooks: WindowHooks): JobKind {
  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    const again = [];
    for (const { id, payload } of jobs) {
      const next = await advanceMembers(tx, tenantId, id, payload as Course, { nowMs, hooks });
      if (next !== undefined) again.push({ id, dueMs: nowMs, payload: next });
    }
    return again;
  }
  return { name: membersKind, sizeMax: 1, alone: true, run };
}

/** One portion of a window's work; returns how far it has come, undefined at its end. */
async function advanceMembers(
  tx: Db,
  tenantId: string,
  windowId: string,
  { version }: Course,
  running: Running,
): Promise<Course | undefined> {
  const window = await readWindow(tx, tenantId, windowId);
  const open = window !== undefined && window.runEndMs !== null ? window : undefined;
  if (version === undefined) {
    const over = open === undefined ? tx`true` : tx`run_start_ms < ${open.runStartMs}`;
    const released = await release(tx, tenantId, windowId, over, running);
    // Entities are locked once a transaction, in their order: what enters does so in the next one.
    if (released === portion || (released > 0 && open !== undefined)) return {};
    await tx`delete from maintenance_targets where tenant_id = ${tenantId} and window_id = ${windowId}`;
    if (open === undefined) return undefined;
    await findTargets(tx, tenantId, open);
  }
  if (open === undefined) return undefined;
  const next = { version: String(open.version) };
  const entered = await enterPortion(tx, tenantId, open, running.nowMs);
  if (entered === "more") return next;
  const leftOut = tx`run_start_ms = ${open.runStartMs} and version < ${open.version}`;
  if (entered === "last") return (await anyMember(tx, tenantId, windowId, leftOut)) ? next : undefined;
  return (await release(tx, tenantId, windowId, leftOut, running)) > 0 ? next : undefined;
}

/** Finds the entities of a run by the window's clause, and leaves them to be taken in. */
async function findTargets(tx: Db, tenantId: string, window: WindowRow): Promise<void> {
  const columns = withoutWindow(tenantId, window.id, await tenantNameOf(tx, tenantId));
  const matching = toMatching(tx, storedClause(window), "clause", columns, "differ");
  await addTargets(tx, tenantId, window.id, 0n, await matchingIds(tx, tenantId, matching, portion));
}

/**
 * How the clause of a window reads entities: in the production state that they have without this window. Else one that
 * asks for the state would lose its entities where they are found again while it runs.
 */
export function withoutWindow(tenantId: string, windowId: string, tenantName: string): Columns {
  const columns = entityResolver(tenantId, { tenantName });
  const ofOthers = (db: Db) => db`case when window_production_state is not null then (
    select m.state from maintenance_members m
    where m.tenant_id = ${tenantId} and m.entity_id = entities.id and m.window_id <> ${windowId}
    order by m.run_start_ms desc, m.window_id desc limit 1) end`;
  return {
    withIds: columns.withIds,
    field: (key) =>
      key === "productionState"
        ? { type: "bigint", sql: (db) => productionStateSql(db, ofOthers(db)) }
        : columns.field(key),
  };
}

/** Ids put one after the other, as many as one transaction takes in each. */
function portionsOf(ids: readonly Buffer[]): Buffer[] {
  const count = Math.ceil(ids.length / portion);
  return Array.from({ length: count }, (_, i) => Buffer.concat(ids.slice(i * portion, (i + 1) * portion)));
}

async function addTargets(tx: Db, tenantId: string, windowId: string, from: bigint, portions: readonly Buffer[]) {
  if (portions.length === 0) return;
  await tx`
    insert into maintenance_targets (tenant_id, window_id, place, ids)
    select home.tenant_id, ${windowId}::text, place, ids
    from ${home(tx, tenantId)}, unnest(
      ${bigintArray(portions.map((_, i) => from + BigInt(i)))}::bigint[], ${byteaArray(portions)}::bytea[]
    ) as target (place, ids)`;
}

/** Takes the next portion of entities into a run; "last": there is no other after it, "none": there was none. */
async function enterPortion(
  tx: Db,
  tenantId: string,
  window: WindowRow,
  nowMs: number,
): Promise<"more" | "last" | "none"> {
  const [target] = await tx<{ place: bigint; ids: Buffer }[]>`
    delete from maintenance_targets
    where tenant_id = ${tenantId} and window_id = ${window.id} and place = (
      select min(place) from maintenance_targets where tenant_id = ${tenantId} and window_id = ${window.id}
    )
    returning place, ids`;
  if (target === undefined) return "none";
  const [{ last } = { last: null }] = await tx<{ last: bigint | null }[]>`
    select max(place) as last from maintenance_targets where tenant_id = ${tenantId} and window_id = ${window.id}`;
  const rest = last === null ? "last" : "more";
  const wanted = splitIds(target.ids);
  // An entity may be found twice, itself and as a child; and parents may go round in a circle.
  const [locked, known] = await Promise.all([
    lockProductionStates(tx, tenantId, wanted),
    tx<{ id: Buffer }[]>`
      select entity_id as id from maintenance_members
      where tenant_id = ${tenantId} and window_id = ${window.id} and version = ${window.version}
        and entity_id = any(${byteaArray(wanted)}::bytea[])`,
  ]);
  const inside = new Set(known.map(({ id }) => keyOf(id)));
  const ids = locked
    .filter(({ deleted, decommissioned }) => !deleted && (window.force || !decommissioned))
    .flatMap(({ id }) => (inside.has(keyOf(id)) ? [] : [id]));
  if (ids.length === 0) return rest;
  const [, states] = await Promise.all([enter(tx, tenantId, window, ids), ruling(tx, tenantId, ids)]);
  const [, children] = await Promise.all([
    setWindowStates(tx, tenantId, states, nowMs),
    window.doNotPropagateToChildren ? [] : childIds(tx, tenantId, ids),
  ]);
  await addTargets(tx, tenantId, window.id, (last ?? target.place) + 1n, portionsOf(children));
  return children.length > 0 ? "more" : rest;
}

async function enter(tx: Db, tenantId: string, window: WindowRow, ids: readonly Buffer[]): Promise<void> {
  const exit = window.overrideExitState ? window.exitState : null;
  await tx`
    insert into maintenance_members (tenant_id, entity_id, window_id, run_start_ms, version, state, exit_state)
    select home.tenant_id, id, ${window.id}, ${window.runStartMs}, ${window.version}, ${window.maintenanceState},
      ${exit}::int4
    from ${home(tx, tenantId)}, unnest(${byteaArray(ids)}::bytea[]) as member (id)
    on conflict (tenant_id, entity_id, window_id) do update set
      run_start_ms = excluded.run_start_ms, version = excluded.version, state = excluded.state,
      exit_state = excluded.exit_state`;
}

/** The state that windows give each of these entities, whose rows are locked: that of the latest started; null: none. */
async function ruling(tx: Db, tenantId: string, ids: readonly Buffer[]) {
  const rows = await tx<{ id: Buffer; state: number }[]>`
    select id, state from unnest(${byteaArray(ids)}::bytea[]) as asked (id)
      cross join lateral (
        select state from maintenance_members where tenant_id = ${tenantId} and entity_id = asked.id
        order by run_start_ms desc, window_id desc limit 1
      ) as latest`;
  const states = new Map(rows.map(({ id, state }) => [keyOf(id), BigInt(state)]));
  return ids.map((id) => ({ id, windowState: states.get(keyOf(id)) ?? null }));
}

async function anyMember(tx: Db, tenantId: string, windowId: string, condition: Fragment): Promise<boolean> {
  const found = await tx`
    select from maintenance_members where tenant_id = ${tenantId} and window_id = ${windowId} and ${condition} limit 1`;
  return found.count > 0;
}

/** Lets a portion of a window's entities go; returns how many. */
async function release(
  tx: Db,
  tenantId: string,
  windowId: string,
  condition: Fragment,
  { nowMs, hooks }: Running,
): Promise<number> {
  const found = await tx<{ id: Buffer }[]>`
    select entity_id as id from maintenance_members
    where tenant_id = ${tenantId} and window_id = ${windowId} and ${condition} limit ${portion}`;
  if (found.length === 0) return 0;
  const ids = found.map(({ id }) => id);
  await lockProductionStates(tx, tenantId, ids);
  const gone = await tx<{ id: Buffer; exit: number | null }[]>`
    delete from maintenance_members
    where tenant_id = ${tenantId} and window_id = ${windowId} and entity_id = any(${byteaArray(ids)}::bytea[])
    returning entity_id as id, exit_state as exit`;
  const exits = new Map(gone.map(({ id, exit }) => [keyOf(id), exit]));
  const states = await ruling(tx, tenantId, ids);
  const changes = states.map(({ id, windowState }) => {
    const exit = exits.get(keyOf(id)) ?? null;
    return { id, windowState, ...(exit !== null && { modelState: BigInt(exit) }) };
  });
  await setWindowStates(tx, tenantId, changes, nowMs);
  const free = states.filter(({ windowState }) => windowState === null).map(({ id }) => id);
  if (free.length > 0) await hooks.onReleased?.(tx, tenantId, free);
  return found.length;
}

/** Which of these entities are in a window that is open. */
export async function entitiesInWindows(db: Db, tenantId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
  const rows = await db<{ id: Buffer }[]>`
    select distinct id from unnest(${byteaArray(ids)}::bytea[]) as asked (id)
      cross join lateral (
        select from maintenance_members where tenant_id = ${tenantId} and entity_id = asked.id limit 1
      ) as inside`;
  return rows.map(({ id }) => id);
}
