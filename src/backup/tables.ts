import type { Db } from "../db/connect.ts";
import type { Partition, TableHead } from "./dump-format.ts";

/** A name in SQL. */
export const quotedName = (name: string) => `"${name.replaceAll('"', '""')}"`;

/**
 * Every table with rows of its own, the ones that others refer to first; the list of migrations is none of them. Columns that
 * PostgreSQL computes are left out.
 */
export async function tablesToCopy(db: Db): Promise<TableHead[]> {
  const tables = await db<{ table: string; partitioned: boolean; columns: string[] }[]>`
    select c.relname::text as table, c.relkind = 'p' as partitioned,
      (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> 'migrations'
    order by c.relname collate "C"`;
  const references = await db<{ from: string; to: string }[]>`
    select f.relname::text as from, t.relname::text as to
    from pg_constraint k join pg_class f on f.oid = k.conrelid join pg_class t on t.oid = k.confrelid
    where k.contype = 'f' and f.relnamespace = current_schema()::regnamespace and f.oid <> t.oid`;
  const partitions = await partitionsOf(db);
  const left = new Map(tables.map((each) => [each.table, each]));
  const ordered: TableHead[] = [];
  while (left.size > 0) {
    const free = [...left.values()].filter(
      ({ table }) => !references.some(({ from, to }) => from === table && left.has(to)),
    );
    if (free.length === 0) throw new Error(`these tables refer to each other in a circle: ${[...left.keys()]}`);
    for (const { table, partitioned, columns } of free) {
      left.delete(table);
      ordered.push({ table, columns, ...(partitioned && { partitions: partitions.get(table) ?? [] }) });
    }
  }
  return ordered;
}

/** The partitions of each table, in the order of time. */
async function partitionsOf(db: Db): Promise<Map<string, Partition[]>> {
  const rows = await db<{ table: string; name: string; bounds: string }[]>`
    select p.relname::text as table, c.relname::text as name, pg_get_expr(c.relpartbound, c.oid) as bounds
    from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
    where c.relispartition and p.relkind = 'p' and p.relnamespace = current_schema()::regnamespace
    order by 1, 2`;
  const found = Map.groupBy(rows, ({ table }) => table);
  return new Map([...found].map(([table, parts]) => [table, parts.map(partition)]));
}

function partition({ name, bounds }: { name: string; bounds: string }): Partition {
  const [, from, to] = /^FOR VALUES FROM \('(-?\d+)'\) TO \('(-?\d+)'\)$/.exec(bounds) ?? [];
  if (from === undefined || to === undefined) throw new Error(`the partition ${name} has no range of time: ${bounds}`);
  return { name, fromMs: Number(from), toMs: Number(to) };
}
