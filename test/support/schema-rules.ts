import type { Db } from "../../src/db/connect.ts";

/** Small tables that every node holds: they are read before the tenant is known, or belong to none. */
export const everywhere: Readonly<Record<string, string>> = {
  tenants: "its id is the tenant",
  api_key_prefixes: "leads from a key to its tenant",
  master_keys: "of the whole database",
  migrations: "of the whole database",
  leases: "of no tenant: who leads in what",
};

/**
 * What in this database could not be distributed by tenant, a line each. Tables of `exceptions` need no tenant at the
 * begin of their keys; one that needs no exception is named too.
 */
export async function schemaFaults(db: Db, exceptions = everywhere): Promise<string[]> {
  const here = db`'public'::regnamespace`;
  const things = await db<{ fault: string }[]>`
    select 'trigger ' || tgname || ' on ' || tgrelid::regclass as fault from pg_trigger where not tgisinternal
    union all select 'sequence ' || relname from pg_class where relkind = 'S' and relnamespace = ${here}
    union all select 'rule ' || rulename || ' on ' || ev_class::regclass from pg_rewrite
      join pg_class c on c.oid = ev_class where c.relnamespace = ${here} and c.relkind <> 'v'
    union all select 'row-level security on ' || relname from pg_class where relnamespace = ${here} and relrowsecurity
    union all select 'partitions of more than one level: ' || c.relname from pg_inherits i
      join pg_class c on c.oid = i.inhrelid where c.relkind = 'p' and c.relnamespace = ${here}
    union all select 'exclusion constraint ' || conname from pg_constraint where contype = 'x' and connamespace = ${here}`;
  const keys = await db<{ table: string; text: string; columns: string[] }[]>`
    select c.relname as table, pg_get_indexdef(i.indexrelid) as text,
      array(select coalesce(a.attname, '(expression)')::text from unnest(i.indkey::int2[]) with ordinality as k (number, place)
        left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number order by k.place) as columns
    from pg_index i join pg_class c on c.oid = i.indrelid
    where i.indisunique and c.relnamespace = ${here} order by 1, 2`;
  const links = await db<
    { name: string; from: string[]; to: string[]; table: string; target: string; clears: boolean }[]
  >`
    select conrelid::regclass || '.' || conname as name, confrelid::regclass::text as target,
      conrelid::regclass::text as table, confdeltype in ('n', 'd') or confupdtype in ('n', 'd') as clears,
      array(select a.attname::text from unnest(conkey) with ordinality as k (number, place)
        join pg_attribute a on a.attrelid = conrelid and a.attnum = k.number order by k.place) as from,
      array(select a.attname::text from unnest(confkey) with ordinality as k (number, place)
        join pg_attribute a on a.attrelid = confrelid and a.attnum = k.number order by k.place) as to
    from pg_constraint where contype = 'f' and connamespace = ${here} order by 1`;

  // Shards of two tables lie together only where their distribution columns have one type.
  const columns = await db<{ table: string; type: string; required: boolean }[]>`
    select c.relname as table, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
    where c.relnamespace = ${here} and c.relkind in ('r', 'p') order by 1`;
  const odd = columns.filter(({ type, required }) => type !== "uuid" || !required);

  const loose = keys.filter(({ columns }) => columns[0] !== "tenant_id");
  const idle = Object.keys(exceptions).filter((table) => !loose.some((key) => key.table === table));
  return [
    ...things.map(({ fault }) => fault),
    ...loose.filter(({ table }) => !(table in exceptions)).map(({ text }) => `key without the tenant: ${text}`),
    ...idle.map((table) => `${table} needs no exception`),
    ...links
      .filter(({ from, to, target }) => {
        const place = from.indexOf("tenant_id");
        return place < 0 || to[place] !== (target === "tenants" ? "id" : "tenant_id");
      })
      .map(({ name }) => `foreign key without the tenant: ${name}`),
    ...links
      .filter(({ table, target }) => table in exceptions && !(target in exceptions))
      .map(({ name }) => `foreign key from every node to a tenant's: ${name}`),
    ...links.filter(({ clears }) => clears).map(({ name }) => `foreign key that would clear the tenant: ${name}`),
    ...odd.map(({ table }) => `the tenant of ${table} is no uuid, or may be missing`),
  ];
}

/** The tables that would be distributed: those with a tenant_id, but for the ones that every node holds. */
export async function distributedTables(db: Db): Promise<Set<string>> {
  const rows = await db<{ table: string }[]>`
    select c.relname as table from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`;
  return new Set(rows.map(({ table }) => table).filter((table) => !(table in everywhere)));
}
