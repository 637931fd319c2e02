import type { Fragment, MaybeRow, PendingQuery } from "postgres";
import { byteaArray, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { invalidField } from "../errors.ts";
import { keysIn, notingKeys } from "./field-keys.ts";
import { ID_BYTES, idText, idTextSql } from "./identity.ts";
import { type EntityRow, entityColumns } from "./messages.ts";

/** How many custom properties an entity may have. */
export const customPropertiesMax = 200;

/** When a write of many entities happens, and what cuts it short. */
export interface Writing {
  nowMs: number;
  signal: AbortSignal;
}

// A statement over many entities takes longer than others may. The deadline of its call ends it all the same.
const statementMsMax = 600_000;

/** Runs a statement over however many entities, in the caller's transaction. */
async function runLong<T extends readonly MaybeRow[]>(tx: Db, query: PendingQuery<T>, signal: AbortSignal) {
  await tx.unsafe(`set local statement_timeout = ${statementMsMax}`);
  return await cancelOn(query, signal);
}

/** Values by the names of properties. */
export type CustomProperties = Record<string, unknown>;

// A JSON object of 200 members takes more than this, whatever they are; smaller ones need not be counted.
const crowdedBytesMin = 1600;

/**
 * Adds properties to the living entities that `matching` holds for, or replaces their values, in the caller's transaction;
 * one statement however many there are. Answers the ids of all of them. May be repeated.
 * @throws code 3 at `properties`, and nothing is written, when one of them would have too many.
 */
export async function setCustomProperties(
  tx: Db,
  tenantId: string,
  matching: Fragment,
  properties: CustomProperties,
  { nowMs, signal }: Writing,
): Promise<string[]> {
  // Locked in the order of ids, as all writers of entities do, so that none waits for another in a circle.
  const query = tx<[{ crowded: Buffer | null; ids: string | null }]>`
    with picked as materialized (
      select id, custom_properties as before, custom_properties || ${JSON.stringify(properties)}::text::jsonb as after
      from entities
      where tenant_id = ${tenantId} and deleted_ms is null and ${matching}
      order by id for no key update
    ), crowded as materialized (
      select id from picked
      where pg_column_size(after) > ${crowdedBytesMin}
        and (select count(*) from jsonb_object_keys(after)) > ${customPropertiesMax}
      limit 1
    ), changed as (
      update entities set custom_properties = picked.after, updated_ms = ${BigInt(nowMs)}
      from picked
      where entities.tenant_id = ${tenantId} and entities.id = picked.id and picked.after <> picked.before
        and not exists (select from crowded)
      returning 1
    )
    select (select id from crowded) as crowded,
      (select string_agg(${idTextSql(tx, tx`id`)}, ',') from picked) as ids`;
  const [row] = await runLong(tx, query, signal);
  if (row.crowded !== null) {
    throw invalidField(
      "properties",
      `must not bring the entity ${idText(row.crowded)} above ${customPropertiesMax} properties`,
    );
  }
  if (row.ids === null) return [];
  await notingKeys(tx, tenantId, { customProperty: Object.keys(properties) });
  return row.ids.split(",");
}

/**
 * Takes properties away from the living entities that `matching` holds for, all of them without `keys`, in the caller's
 * transaction; one statement. Answers how many entities had some. May be repeated.
 */
export async function deleteCustomProperties(
  tx: Db,
  tenantId: string,
  matching: Fragment,
  keys: readonly string[] | undefined,
  { nowMs, signal }: Writing,
): Promise<number> {
  const names = textArray(keys ?? []);
  const query = tx`
    with picked as materialized (
      select id, ${keys === undefined ? tx`'{}'::jsonb` : tx`custom_properties - ${names}::text[]`} as after
      from entities
      where tenant_id = ${tenantId} and deleted_ms is null and ${matching}
        and ${keys === undefined ? tx`custom_properties <> '{}'` : tx`custom_properties ?| ${names}::text[]`}
      order by id for no key update
    )
    update entities set custom_properties = picked.after, updated_ms = ${BigInt(nowMs)}
    from picked
    where entities.tenant_id = ${tenantId} and entities.id = picked.id`;
  return (await runLong(tx, query, signal)).count;
}

/**
 * The ids of the living entities that `matching` holds for, in their order, in portions of at most so many, each put one
 * behind the other.
 */
export async function matchingIds(db: Db, tenantId: string, matching: Fragment, portion: number): Promise<Buffer[]> {
  // Put together in SQL: a row for each of a million ids would hold the process up.
  const rows = await db<{ ids: Buffer }[]>`
    select string_agg(id, ''::bytea order by id) as ids
    from (
      select id, (row_number() over (order by id) - 1) / ${portion}::int4 as portion
      from entities
      where tenant_id = ${tenantId} and deleted_ms is null and ${matching}
    ) as matching
    group by portion order by portion`;
  return rows.map(({ ids }) => ids);
}

/** Ids that were put one behind the other. */
export function splitIds(bytes: Buffer): Buffer[] {
  const ids: Buffer[] = [];
  for (let at = 0; at < bytes.byteLength; at += ID_BYTES) ids.push(bytes.subarray(at, at + ID_BYTES));
  return ids;
}

/** An entity's row that the transaction has locked. */
export type LockedEntity = EntityRow & { custom_properties: CustomProperties };

/** Reads the living ones of these entities, as clauses read them, and locks them until the transaction ends. */
export async function lockEntities(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<LockedEntity[]> {
  return await tx<LockedEntity[]>`
    select ${entityColumns(tx)}
    from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[]) and deleted_ms is null
    order by id for no key update`;
}

/** Writes the properties of entities whole, of rows that the transaction has locked. */
export async function writeCustomProperties(
  tx: Db,
  tenantId: string,
  changes: readonly { id: Buffer; properties: CustomProperties }[],
  nowMs: number,
): Promise<void> {
  if (changes.length === 0) return;
  const keys = keysIn(changes.map(({ properties }) => properties));
  await tx`
    with noted as (${notingKeys(tx, tenantId, { customProperty: keys })})
    update entities set custom_properties = changed.properties, updated_ms = ${BigInt(nowMs)}
    from unnest(
      ${byteaArray(changes.map(({ id }) => id))}::bytea[],
      ${jsonArray(changes.map(({ properties }) => properties))}::jsonb[]
    ) as changed (id, properties)
    where entities.tenant_id = ${tenantId} and entities.id = changed.id`;
}
