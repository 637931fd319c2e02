import type { Fragment } from "postgres";
import { byteaArray, textArray } from "../batch.ts";
import type { Db } from "../connect.ts";
import { cancelOn } from "../driver/cancel.ts";
import { sqlJoin } from "../sql-join.ts";
import { storedBytes } from "../stored-bytes.ts";

/** What the large rows of a page may hold together, bytes; a page holds one of them at least. */
export const pageBytesMax = 16 * 1024 * 1024;
/** Larger values are read apart. */
const smallBytesMax = 4096;

/** The members of a list's rows that may be large, each a jsonb column; its table has the primary key (tenant_id, id). */
export interface PageContents<K extends string> {
  table: string;
  id: "bytea" | "text";
  columns: Readonly<Record<K, string>>;
}

/** A row of a page as it is read first: its contents are null where any of them is large. */
export type Outlined<R> = R & { small: boolean };

const columnsOf = (db: Db, { columns }: PageContents<string>) =>
  Object.entries(columns).map(([member, column]) => ({ member: db`${db(member)}`, column: db`${db(column)}` }));

/** The columns of the contents, and `small`. What is stored compressed may be any size, which its stored size does not show. */
export function outlineColumns(db: Db, contents: PageContents<string>): Fragment {
  const columns = columnsOf(db, contents).map(({ member, column }) => ({
    member,
    column,
    small: db`(pg_column_compression(${column}) is null and coalesce(pg_column_size(${column}), 0) <= ${smallBytesMax})`,
  }));
  const values = columns.map(({ member, column, small }) => db`case when ${small} then ${column} end as ${member}`);
  const small = sqlJoin(
    db,
    columns.map((each) => each.small),
    "and",
  );
  return db`${sqlJoin(db, values, ",")}, ${small} as small`;
}

const keyOf = (id: Buffer | string) => (typeof id === "string" ? id : id.toString("latin1"));

/**
 * Contents of these rows, in order up to the bound, by their ids, and how many they are. Sizes are added up row by row, so that not
 * more is unpacked than is answered. By the primary key.
 */
async function readLarge(
  db: Db,
  tenantId: string,
  contents: PageContents<string>,
  ids: readonly (Buffer | string)[],
  signal: AbortSignal | undefined,
) {
  const table = db(contents.table);
  const columns = columnsOf(db, contents);
  const bytes = storedBytes(
    db,
    columns.map(({ column }) => column),
  );
  const list =
    contents.id === "bytea"
      ? db`(${byteaArray(ids as Buffer[])}::bytea[])`
      : db`(${textArray(ids as string[])}::text[])`;
  const values = columns.map(({ member, column }) => db`, ${column} as ${member}`);
  const rows = await cancelOn(
    db<({ fit: number; id: Buffer | string } & Record<string, unknown>)[]>`
      with recursive walk (place, bytes) as (
        select 0, 0::int8
        union all
        select place + 1, bytes + coalesce((
            select ${bytes} from ${table} where tenant_id = ${tenantId} and id = ${list}[place + 1]
          ), 0)
        from walk where bytes <= ${pageBytesMax} and place < ${ids.length}
      ), fitting as (
        select greatest(1, count(*))::int4 as fit from walk where place > 0 and bytes <= ${pageBytesMax}
      )
      select fit, id ${values} from fitting
        left join ${table} on tenant_id = ${tenantId} and id = any(${list}[1:fit])`,
    signal,
  );
  const found = rows.filter(({ id }) => id !== null);
  return {
    fit: rows[0]?.fit ?? 0,
    byId: new Map(found.map(({ id, fit: _, ...content }) => [keyOf(id), content])),
  };
}

/**
 * The rows of a page with their contents, as many as fit into an answer and `limit` allows, and the row after them, which
 * says that there are more; `count`: without it. `rows` are in the order in which the page is read. `gone`: the contents of a
 * row that was deleted meanwhile.
 */
export async function withContents<K extends string, R extends { id: Buffer | string } & Record<K, unknown>>(
  db: Db,
  tenantId: string,
  contents: PageContents<K>,
  rows: readonly Outlined<R>[],
  { limit, gone, signal }: { limit: number; gone: Pick<R, K>; signal?: AbortSignal },
): Promise<{ rows: R[]; count: number }> {
  const wanted = rows.slice(0, limit);
  const large = wanted.filter(({ small }) => !small);
  if (large.length === 0) return { rows: [...rows], count: wanted.length };
  const ids = large.map(({ id }) => id);
  const { fit, byId } = await readLarge(db, tenantId, contents, ids, signal);
  const first = large[fit];
  const count = first === undefined ? wanted.length : wanted.indexOf(first);
  const filled = rows
    .slice(0, count + 1)
    .map((row): R => (row.small ? row : { ...row, ...((byId.get(keyOf(row.id)) as Pick<R, K>) ?? gone) }));
  return { rows: filled, count };
}
