import { connectOnce, type Db } from "../connect.ts";

/** The addresses of one embedded database: of the server's own role, and of the superuser. */
export interface Addresses {
  own: string;
  admin: string;
}

/** Asks the server behind the address one thing, in a database of its. */
async function ask<T>(url: string, database: string, fn: (db: Db) => Promise<T>): Promise<T> {
  const { sql, close } = connectOnce(url.replace(/\/\w+$/, `/${database}`), "belfry start");
  try {
    return await fn(sql);
  } finally {
    await close();
  }
}

/** Whether the server at the address lets us in. */
export const answers = (url: string) =>
  ask(url, "postgres", (sql) => sql`select 1`).then(
    () => true,
    () => false,
  );

// Made by ourselves, of hexadecimal digits: no quotes.
const passwordOf = (url: string) => new URL(url).password;

/**
 * What stands in the server's schemas and changes hands with the database. What belongs to an extension, and sequences of
 * columns, go with those.
 */
const handOver = `do $$ declare statement text; begin
  for statement in
    select format('alter %s %s owner to belfry', kind, name) from (
      select case relkind when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view' else 'table' end,
        oid::regclass::text, relnamespace, 'pg_class'::regclass, oid
      from pg_class where relkind in ('r', 'p', 'v', 'm', 'S')
      union all select 'routine', oid::regprocedure::text, pronamespace, 'pg_proc'::regclass, oid from pg_proc
      union all select 'type', oid::regtype::text, typnamespace, 'pg_type'::regclass, oid from pg_type where typtype in ('e', 'd')
      union all select 'text search configuration', oid::regconfig::text, cfgnamespace, 'pg_ts_config'::regclass, oid
      from pg_ts_config
      union all select 'text search dictionary', oid::regdictionary::text, dictnamespace, 'pg_ts_dict'::regclass, oid
      from pg_ts_dict
      union all select 'statistics', format('%I.%I', stxnamespace::regnamespace, stxname), stxnamespace,
        'pg_statistic_ext'::regclass, oid from pg_statistic_ext
      union all select 'schema', quote_ident(nspname), oid, 'pg_namespace'::regclass, oid from pg_namespace
      where nspname <> 'public'
    ) as things (kind, name, namespace, catalogue, id)
    where namespace::regnamespace::text !~ '^(pg_|information_schema)'
      and not exists (
        select from pg_depend where classid = catalogue and objid = id
          and (deptype = 'e' or kind = 'sequence' and deptype in ('a', 'i')))
  loop execute statement; end loop;
end $$`;

/**
 * Sees to it that there is a superuser for the address of one, a role without such rights for the server's own, and its
 * database. In a cluster of an earlier version the server's own role was the superuser: another takes its place, and it
 * becomes one without rights that owns all that was its own. May be repeated, wherever it was interrupted.
 */
export async function prepareDatabase({ own, admin }: Addresses): Promise<void> {
  if (!(await answers(admin))) {
    await ask(own, "postgres", async (sql) => {
      const [found] = await sql`select 1 from pg_roles where rolname = 'postgres'`;
      const verb = found === undefined ? "create" : "alter";
      await sql.unsafe(`${verb} role postgres superuser login password '${passwordOf(admin)}'`);
    });
  }
  const made = await ask(admin, "postgres", async (sql) => {
    const [role] = await sql`select rolsuper as superuser from pg_roles where rolname = 'belfry'`;
    if (role?.superuser === true) {
      // The role that initdb has made must stay a superuser.
      await sql`alter role belfry rename to belfry_before`;
      await sql`alter role belfry_before nologin`;
    }
    if (role === undefined || role.superuser === true) {
      await sql.unsafe(`create role belfry login password '${passwordOf(own)}'`);
    }
    const [database] = await sql`
      select datdba::regrole::text as owner from pg_database where datname = 'belfry'`;
    if (database === undefined) await sql`create database belfry owner belfry`;
    return database;
  });
  if (made === undefined || made.owner === "belfry") return;
  await ask(admin, "belfry", async (sql) => {
    await sql.unsafe(`begin; ${handOver}; alter database belfry owner to belfry; commit`);
  });
}
