import type { Fragment } from "postgres";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Matching } from "../clause/to-sql.ts";
import { byteaArray, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { home } from "../db/home-row.ts";
import { invalidField } from "../errors.ts";
import { type BatchedWrite, inPortions, matchingIds, portionMax, splitIds } from "./batched-writes.ts";
import { noteKeys } from "./field-keys.ts";
import { idText } from "./identity.ts";
import { livingEntities, livingWhere } from "./matching.ts";
import { type EntityRow, entityColumns } from "./messages.ts";
import { storedRow } from "./stored-row.ts";
import { customTermsBytesMax } from "./terms.ts";

/** How many custom properties an entity may have. */
export const customPropertiesMax = 200;

/** Values by the names of properties. */
export type CustomProperties = Record<string, unknown>;

// A JSON object of 200 members takes more than this, whatever they are; smaller ones need not be counted.
const crowdedBytesMin = 1600;

// Nor can one that takes less make more terms than an index holds: each byte of a value makes up to 150 of them.
const overfullBytesMin = Math.floor(customTermsBytesMax / 150);

/** Ends an insert of rows that are there and locked: conflicts are found by the key's index alone (design/statements). */
const replacing = (db: Db) => db`on conflict (tenant_id, id) do update set
  custom_properties = excluded.custom_properties, updated_ms = excluded.updated_ms`;

/** SQL of a row whose properties, with these added, are too many, or make too many terms. */
const isCrowded = (db: Db, after: Fragment) =>
  db`(pg_column_size(${after}) > ${crowdedBytesMin} and (
    (select count(*) from jsonb_object_keys(${after})) > ${customPropertiesMax}
    or pg_column_size(${after}) > ${overfullBytesMin} and (
      select sum(octet_length(lexeme)) from unnest(entity_terms(tenant_id, '', '{}', '{}', ${after}))
    ) > ${customTermsBytesMax}))`;

function crowdedError(id: Buffer): Error {
  const most = `${customPropertiesMax} properties, nor above ${customTermsBytesMax} bytes of terms to search for`;
  return invalidField("properties", `must not bring the entity ${idText(id)} above ${most}`, FieldRule.SIZE);
}

/**
 * Adds properties to the living entities that `matching` holds for, or replaces their values; many in portions, each a
 * transaction. Returns the ids of those that it changed. May be repeated.
 * @throws code 3 at `properties`, and nothing is written, when one of them would have too many.
 */
export async function setCustomProperties(
  db: Db,
  tenantId: string,
  matching: Matching,
  properties: CustomProperties,
  writing: BatchedWrite,
): Promise<string[]> {
  const added = JSON.stringify(properties);
  const after = (tx: Db) => tx`(custom_properties || ${added}::text::jsonb)` as Fragment;
  if (!writing.few) {
    const { from, sql } = livingEntities(db, tenantId, matching);
    const [row] = await db<{ id: Buffer }[]>`
      select id from ${from} where ${sql} and ${isCrowded(db, after(db))} limit 1`;
    if (row !== undefined) throw crowdedError(row.id);
  }
  const find = (tx: Db) => matchingIds(tx, tenantId, matching, portionMax, writing.signal);
  const found = await inPortions(db, writing, matching, find, async (tx, some) => {
    // Keys come before entities in the order of locks (src/events/lock.ts).
    const { from, sql } = livingEntities(tx, tenantId, some);
    const [any] = await tx`select 1 from ${from} where ${sql} limit 1`;
    if (any === undefined) return { answer: [], count: 0 };
    await noteKeys(tx, tenantId, { customProperty: Object.keys(properties) }, writing.fieldsMax);
    const [row] = await cancelOn(
      tx<[{ crowded: Buffer | null; ids: Buffer | null }]>`
        with picked as materialized (
          select tenant_id, id, custom_properties as before, ${after(tx)} as after
          from entities
          where ${livingWhere(tx, tenantId, some)}
          order by id for no key update
        )
        select (select id from picked where ${isCrowded(tx, tx`after` as Fragment)} limit 1) as crowded,
          (select string_agg(id, ''::bytea) from picked where after <> before) as ids`,
      writing.signal,
    );
    if (row.crowded !== null) throw crowdedError(row.crowded);
    const changed = splitIds(row.ids ?? Buffer.alloc(0));
    if (changed.length > 0) await cancelOn(rewrite(tx, tenantId, changed, after(tx), writing.nowMs), writing.signal);
    return { answer: changed.map(idText), count: changed.length };
  });
  return found.flat();
}

/**
 * Takes properties away from the living entities that `matching` holds for, all of them without `keys`; many in portions,
 * each a transaction. May be repeated.
 */
export async function deleteCustomProperties(
  db: Db,
  tenantId: string,
  matching: Matching,
  keys: readonly string[] | undefined,
  writing: BatchedWrite,
): Promise<void> {
  const names = textArray(keys ?? []);
  const having = (tx: Db, { sql, sources }: Matching): Matching => ({
    sql: tx`${sql} and ${keys === undefined ? tx`custom_properties <> '{}'` : tx`custom_properties ?| ${names}::text[]`}`,
    sources,
  });
  const find = (tx: Db) => matchingIds(tx, tenantId, having(tx, matching), portionMax, writing.signal);
  await inPortions(db, writing, matching, find, async (tx, some) => {
    const query = tx<{ id: Buffer }[]>`
      select id from entities
      where ${livingWhere(tx, tenantId, having(tx, some))}
      order by id for no key update`;
    const changed = (await cancelOn(query, writing.signal)).map(({ id }) => id);
    const after = keys === undefined ? tx`'{}'::jsonb` : tx`custom_properties - ${names}::text[]`;
    if (changed.length > 0) await cancelOn(rewrite(tx, tenantId, changed, after, writing.nowMs), writing.signal);
    return { answer: undefined, count: changed.length };
  });
}

/** Sets the properties of entities. `after` is SQL over the stored row, which `storedRow` calls `here`; the tenant comes from it, too. */
const rewrite = (tx: Db, tenantId: string, ids: readonly Buffer[], after: Fragment, nowMs: number) => tx`
  insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms, custom_properties)
  select here.tenant_id, sent.id, name, dimensions, metadata, created_ms, ${BigInt(nowMs)}, 0, ${after}
  from unnest(${byteaArray(ids)}::bytea[]) as sent (id) ${storedRow(tx, tenantId)}
  ${replacing(tx)}`;

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

/** Writes the properties of entities whole, of rows that the transaction has locked; their keys are known (`noteKeys`). */
export async function writeCustomProperties(
  tx: Db,
  tenantId: string,
  changes: readonly { id: Buffer; properties: CustomProperties }[],
  nowMs: number,
): Promise<void> {
  if (changes.length === 0) return;
  await tx`
    insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms, custom_properties)
    select home.tenant_id, sent.id, name, dimensions, metadata, created_ms, ${BigInt(nowMs)}, 0, properties
    from ${home(tx, tenantId)}, unnest(
      ${byteaArray(changes.map(({ id }) => id))}::bytea[],
      ${jsonArray(changes.map(({ properties }) => properties))}::jsonb[]
    ) as sent (id, properties)
      ${storedRow(tx, tenantId)}
    ${replacing(tx)}`;
}
