import type { Fragment } from "postgres";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Config } from "../config/settings.ts";
import { failedPrecondition } from "../errors.ts";
import type { Db } from "./connect.ts";
import { addToTotal, type Total } from "./running-total.ts";
import { sqlJoin } from "./sql-join.ts";
import { storedBytes } from "./stored-bytes.ts";

/** How much a tenant may have of each kind of thing that it sets up. */
export type QuotaBounds = Pick<Config, "resourcesMax" | "resourceBytesMax">;

/** The rows that belong to a kind of thing, their columns that are large or many, and the one that names the thing. */
interface Rows {
  table: string;
  key: string;
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

/** The rows of a kind of a tenant, those of one thing where it is named. */
function rowsOf(db: Db, tenantId: string, { table, key }: Rows, only: Kept["only"], name?: string): Fragment {
  const conditions: Fragment[] = [db`tenant_id = ${tenantId}`];
  if (only !== undefined) conditions.push(db`${db(only.column)} = ${only.value}`);
  if (name !== undefined) conditions.push(db`${db(key)} = ${name}`);
  return db`${db(table)} where ${sqlJoin(db, conditions, "and")}`;
}

async function held(tx: Db, tenantId: string, kept: Kept, name?: string): Promise<Total> {
  const others = (kept.with ?? []).map(
    (rows) =>
      tx` + (select coalesce(sum(${bytesOf(tx, rows.columns)}), 0) from ${rowsOf(tx, tenantId, rows, undefined, name)})`,
  );
  const [row] = await tx<[Total]>`
    select count(*)::float8 as count, (coalesce(sum(${bytesOf(tx, kept.columns)}), 0) ${others.length === 0 ? tx`` : others})::float8 as size
    from ${rowsOf(tx, tenantId, kept, kept.only, name)}`;
  return row;
}

/** Bytes that a thing holds, with what is not yet committed. */
export async function heldBytes(tx: Db, tenantId: string, kept: Kept, name: string): Promise<number> {
  return (await held(tx, tenantId, kept, name)).size;
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
 * Checks what a tenant has of a kind after a thing was made, in the caller's transaction; after a change with the thing's bytes of before
 * it, since one that does not grow is always taken. Late in the transaction: others that make things of the kind wait for its end.
 * @throws code 9 when there is more than the settings allow
 */
export async function checkQuota(
  tx: Db,
  tenantId: string,
  kept: Kept,
  name: string,
  bounds: QuotaBounds,
  before?: number,
): Promise<void> {
  const { things } = kept;
  const made = before === undefined;
  const growth = (await heldBytes(tx, tenantId, kept, name)) - (before ?? 0);
  if (!made && growth === 0) return;
  const crowded = ({ count }: Total) => made && count > bounds.resourcesMax;
  const fits = (total: Total) => !crowded(total) && (growth <= 0 || total.size <= bounds.resourceBytesMax);
  const total = await addToTotal(tx, tenantId, {
    what: things,
    growth: { count: made ? 1 : 0, size: growth },
    fits,
    sum: () => held(tx, tenantId, kept),
  });
  if (fits(total)) return;
  throw crowded(total) ? tooMany(things, bounds) : tooLarge(things, total.size, bounds);
}
