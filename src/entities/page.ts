import type { Fragment } from "postgres";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { joined } from "../db/joined.ts";
import type { EntityRow } from "./messages.ts";

/** What the large entities of a page may hold together, bytes; a page holds one of them at least. */
const pageBytesMax = 16 * 1024 * 1024;
/** Larger values are read apart. */
const smallBytesMax = 4096;

type Content = Pick<EntityRow, "dimensions" | "metadata" | "custom_properties">;

const contents = ["dimensions", "metadata", "custom_properties"] as const;

/** A row of a page: its contents are null where they are large. */
export type PageEntityRow = Omit<EntityRow, keyof Content> & { [K in keyof Content]: Content[K] | null };

/** The columns of a `PageEntityRow`. What is stored compressed may be any size, which its own does not tell. */
export function pageColumns(db: Db): Fragment {
  const small = contents.map((name) => {
    const column = db`${db(name)}`;
    return db`case when pg_column_compression(${column}) is null and pg_column_size(${column}) <= ${smallBytesMax}
      then ${column} end as ${column}`;
  });
  return db`id, name, ${joined(db, small, ",")}, model_production_state, window_production_state, priority,
    model_ms, created_ms, updated_ms, liveness_ms`;
}

const isSmall = <R extends PageEntityRow>(row: R): row is R & Content => contents.every((name) => row[name] !== null);

/**
 * Contents of these entities, in order up to the bound, by their ids in hex, and how many they are. Sizes are added up row by row,
 * so that not more is unpacked than is answered. By the primary key.
 */
async function readLarge(db: Db, tenantId: string, ids: readonly Buffer[], signal: AbortSignal) {
  const [dimensions, metadata, properties] = contents.map(
    (name) => db`case when pg_column_compression(${db(name)}) is null then pg_column_size(${db(name)})
      else octet_length(${db(name)}::text) end`,
  ) as [Fragment, Fragment, Fragment];
  const list = db`(${byteaArray(ids)}::bytea[])`;
  const rows = await cancelOn(
    db<({ fit: number; id: Buffer } & Content)[]>`
      with recursive walk (place, bytes) as (
        select 0, 0::int8
        union all
        select place + 1, bytes + coalesce((
            select ${dimensions} + ${metadata} + ${properties} from entities
            where tenant_id = ${tenantId} and id = ${list}[place + 1]
          ), 0)
        from walk where bytes <= ${pageBytesMax} and place < ${ids.length}
      ), fitting as (
        select greatest(1, count(*))::int4 as fit from walk where place > 0 and bytes <= ${pageBytesMax}
      )
      select fit, id, dimensions, metadata, custom_properties from fitting
        left join entities on tenant_id = ${tenantId} and id = any(${list}[1:fit])`,
    signal,
  );
  const found = rows.filter(({ id }) => id !== null);
  return {
    fit: rows[0]?.fit ?? 0,
    byId: new Map(found.map(({ id, fit: _, ...content }): [string, Content] => [id.toString("hex"), content])),
  };
}

/**
 * The rows of a page with their contents, as many as fit into an answer and `limit` allows, and the row behind them, which
 * says that there are more. `rows` stand in the order in which the page is read.
 */
export async function withContents<R extends PageEntityRow>(
  db: Db,
  tenantId: string,
  rows: readonly R[],
  limit: number,
  signal: AbortSignal,
): Promise<{ rows: (R & Content)[]; count: number }> {
  const wanted = rows.slice(0, limit);
  const large = wanted.filter((row) => !isSmall(row));
  if (large.length === 0) return { rows: rows as readonly (R & Content)[] as (R & Content)[], count: wanted.length };
  const ids = large.map(({ id }) => id);
  const { fit, byId } = await readLarge(db, tenantId, ids, signal);
  const first = large[fit];
  const count = first === undefined ? wanted.length : wanted.indexOf(first);
  const none: Content = { dimensions: {}, metadata: {}, custom_properties: {} };
  const filled = rows.slice(0, count + 1).map((row): R & Content => {
    return isSmall(row) ? row : { ...row, ...(byId.get(row.id.toString("hex")) ?? none) };
  });
  return { rows: filled, count };
}
