import { createHash } from "node:crypto";
import type { Db } from "../../src/db/connect.ts";

/** The n-th id of 20 bytes in the rows of `fillTenant`: of an entity, and of the event on it. */
export const rowId = (tenantId: string, n: number) =>
  createHash("sha256").update(`${tenantId}${n}`).digest().subarray(0, 20);

interface Column {
  table: string;
  name: string;
  type: string;
  required: boolean;
}

/** Tables with less than a row for each entity, and how many rows they may have. */
const rowsMax: Readonly<Record<string, number>> = {
  due_work: 3,
  tenant_counts: 5,
  feed_cursors: 5,
  entity_keys: 1000,
  dictionary_entries: 1000,
  maintenance_windows: 1000,
  property_updaters: 1000,
};

/** Values that are not those of their type: SQL in which `n` numbers the rows, `$1` is the tenant. */
const special: Readonly<Record<string, string>> = {
  "occurrences.number": "1",
  "occurrences.end_ms": "case when n % 4 > 0 then {now} - n * 1000 end",
  "occurrences.start_ms": "{now} - n * 1000 - 60000",
  "annotations.number": "1",
  "rule_matches.number": "1",
  "entities.deleted_ms": "case when n % 50 = 0 then {now} - n * 1000 end",
  "entities.idle": "case when n % 50 = 0 then true end",
  "entities.dimensions": `jsonb_build_object('host', 'name-' || n)`,
  "entities.liveness_ms": "{now} - n * 1000",
  "api_key_prefixes.prefix": "$1::text || n",
  "series.unused_ms": "null",
  "metric_heads.bucket": "n % 8",
  "metric_chunks.last_ms": "{now} - n * 1000 + 60000",
};

/** Columns of all tables of tenants, and the tables in an order in which no row needs one of a later table. */
async function tablesOf(db: Db) {
  const columns = await db<Column[]>`
    select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type, a.attnotnull as required
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attgenerated = ''
      and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant_id')
    order by c.relname, a.attnum`;
  const links = await db<{ table: string; needs: string }[]>`
    select conrelid::regclass::text as table, confrelid::regclass::text as needs from pg_constraint
    where contype = 'f' and conrelid <> confrelid and conparentid = 0`;
  const keys = await db<{ table: string; columns: number }[]>`
    select indrelid::regclass::text as table, indnkeyatts::int4 as columns from pg_index where indisprimary`;
  const byTable = Map.groupBy(columns, ({ table }) => table);
  const ordered: string[] = [];
  const visit = (table: string) => {
    if (ordered.includes(table) || !byTable.has(table)) return;
    for (const { needs } of links.filter((link) => link.table === table)) visit(needs);
    ordered.push(table);
  };
  for (const table of byTable.keys()) visit(table);
  const single = new Set(keys.filter((key) => key.columns === 1).map(({ table }) => table));
  single.delete("api_key_prefixes");
  return ordered.map((table) => ({ table, columns: byTable.get(table) ?? [], single: single.has(table) }));
}

function valueOf({ table, name, type, required }: Column): string {
  const own = special[`${table}.${name}`];
  if (own !== undefined) return own.replaceAll("{now}", String(Date.now()));
  if (name === "tenant_id") return "$1::uuid";
  if (name.endsWith("_ms") && required) return `${Date.now()} - n * 1000`;
  if (type === "bytea") return "substr(sha256(convert_to($1::text || n, 'UTF8')), 1, 20)";
  if (type === "uuid") return "md5($1::text || n)::uuid";
  if (name.endsWith("_ms")) return "null";
  if (type === "text") return "'name-' || n";
  if (type === "text[]" || type === "jsonb" || type === "json") return "'{}'";
  if (type === "boolean") return "false";
  return type === "bigint" ? "n" : "1";
}

/**
 * Gives a tenant `count` rows of each kind that a tenant may have many of, by foreign keys where there are: the n-th have the
 * ids `rowId` and the names `name-n`. Its row of tenants must be there. `among`: of these tables alone.
 */
export async function fillTenant(db: Db, tenantId: string, count: number, among?: readonly string[]): Promise<void> {
  await db`set gin_pending_list_limit = '1GB'`;
  for (const { table, columns, single } of await tablesOf(db)) {
    if (among !== undefined && !among.includes(table)) continue;
    const rows = single ? 1 : Math.min(count, rowsMax[table] ?? count);
    const names = columns.map(({ name }) => `"${name}"`).join(", ");
    const values = columns.map(valueOf).join(", ");
    await db.unsafe(
      `insert into "${table}" (${names}) select ${values} from generate_series(1, ${rows}) n order by 1 on conflict do nothing`,
      [tenantId],
      { prepare: true } as object,
    );
  }
}
