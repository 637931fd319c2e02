import type { Fragment } from "postgres";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Config } from "../config/settings.ts";
import { failedPrecondition } from "../errors.ts";
import type { Db } from "./connect.ts";
import { sqlJoin } from "./sql-join.ts";
import { storedBytes } from "./stored-bytes.ts";

/** How much a tenant may have of each kind of thing that it sets up. */
export type QuotaBounds = Pick<Config, "resourcesMax" | "resourceBytesMax">;

/** The rows that belong to a kind of thing, and their columns that are large or many. */
interface Rows {
  table: string;
  columns: readonly string[];
}

/** A kind of thing that a tenant sets up, one row each. */
export interface Kept extends Rows {
  /** What it is called in the error, in the plural. */
  things: string;
  /** Rows of other tables that are shown with it. */
  with?: readonly Rows[];
  /** Of a table that holds several kinds: the rows of this one. */
  only?: { column: string; value: string };
}

const bytesOf = (db: Db, columns: readonly string[]) =>
  storedBytes(
    db,
    columns.map((name) => db`${db(name)}`),
  );

async function held(tx: Db, tenantId: string, { table, columns, only, with: others = [] }: Kept) {
  const conditions: Fragment[] = [tx`tenant_id = ${tenantId}`];
  if (only !== undefined) conditions.push(tx`${tx(only.column)} = ${only.value}`);
  const sums = others.map(
    (rows) =>
      tx` + (select coalesce(sum(${bytesOf(tx, rows.columns)}), 0) from ${tx(rows.table)} where tenant_id = ${tenantId})`,
  );
  const [row] = await tx<[{ count: number; bytes: number }]>`
    select count(*)::float8 as count, (coalesce(sum(${bytesOf(tx, columns)}), 0) ${sums.length === 0 ? tx`` : sums})::float8 as bytes
    from ${tx(table)} where ${sqlJoin(tx, conditions, "and")}`;
  return row;
}

/** Bytes that a tenant's things of a kind hold, with what is not yet committed. */
export async function heldBytes(tx: Db, tenantId: string, kept: Kept): Promise<number> {
  return (await held(tx, tenantId, kept)).bytes;
}

/** Code 9: one more than a tenant may have. */
export const tooMany = (things: string, { resourcesMax }: QuotaBounds) =>
  failedPrecondition(
    `the tenant has ${resourcesMax} ${things} already, which BELFRY_RESOURCES_MAX allows; delete one first`,
    ErrorReason.QUOTA_REACHED,
  );

/** Code 9: more bytes than a tenant may have. */
export const tooLarge = (things: string, bytes: number, { resourceBytesMax }: QuotaBounds) =>
  failedPrecondition(
    `the ${things} of the tenant would hold ${bytes} bytes together, of at most ${resourceBytesMax}`,
    ErrorReason.QUOTA_REACHED,
  );

/**
 * Checks what a tenant has of a kind after a row was made, in the caller's transaction; after a change with the bytes of before
 * it, since one that does not grow is always taken. Calls at the same time do not see each other: each may pass a bound by its own.
 * @throws code 9 when there is more than the settings allow
 */
export async function checkQuota(
  tx: Db,
  tenantId: string,
  kept: Kept,
  bounds: QuotaBounds,
  before?: number,
): Promise<void> {
  const { things } = kept;
  const { resourcesMax, resourceBytesMax } = bounds;
  const { count, bytes } = await held(tx, tenantId, kept);
  if (before === undefined && count > resourcesMax) throw tooMany(things, bounds);
  if (bytes > resourceBytesMax && bytes > (before ?? 0)) {
    throw tooLarge(things, bytes, bounds);
  }
}
