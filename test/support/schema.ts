import type { Db } from "../../src/db/connect.ts";

/** The schema as text, from the catalogue: what pg_dump would say, had the embedded PostgreSQL one. */
export async function printSchema(db: Db): Promise<string> {
  const extensions = await db`select extname as name from pg_extension where extname <> 'plpgsql' order by extname`;
  const columns = await db`
    select c.relname as table, c.relkind::text as kind, a.attname as name,
      format_type(a.atttypid, a.atttypmod) as type,
      case when a.attcollation <> t.typcollation then quote_ident(o.collname) end as collation,
      a.attnotnull as required, pg_get_expr(d.adbin, d.adrelid) as fallback
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_collation o on o.oid = a.attcollation
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S') and not c.relispartition
    order by c.relname collate "C", a.attnum`;
  const constraints = await db`
    select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as text
    from pg_constraint
    where connamespace = 'public'::regnamespace and contype <> 'n' and conrelid <> 0
    order by 1, contype = 'p' desc, conname collate "C"`;
  const indexes = await db`
    select tablename as table, indexdef as text from pg_indexes
    where schemaname = 'public' and indexname not in (select conname from pg_constraint)
    order by tablename collate "C", indexname collate "C"`;
  const functions = await db`
    select pg_get_functiondef(p.oid) as text
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace
      and not exists (select from pg_depend d where d.objid = p.oid and d.classid = 'pg_proc'::regclass and d.deptype = 'e')
    order by p.proname collate "C"`;

  const lines = extensions.map(({ name }) => `create extension ${name};`);
  lines.push(...functions.map(({ text }) => `\n${text.trim()};`));
  for (const table of new Set(columns.map((column) => column.table as string))) {
    const own = columns.filter((column) => column.table === table);
    const members = own.map(({ name, type, collation, required, fallback }) => {
      const rest = `${collation ? ` collate ${collation}` : ""}${required ? " not null" : ""}${fallback ? ` default ${fallback}` : ""}`;
      return `  ${name} ${type}${rest}`;
    });
    members.push(
      ...constraints.filter((one) => one.table === table).map(({ name, text }) => `  constraint ${name} ${text}`),
    );
    lines.push("", `create table ${table} (`, members.join(",\n"), ");");
    lines.push(...indexes.filter((index) => index.table === table).map(({ text }) => `${text};`));
  }
  return `-- Made by test/db/migrate.test.ts: npx vitest run test/db/migrate.test.ts --update\n${lines.join("\n")}\n`;
}
