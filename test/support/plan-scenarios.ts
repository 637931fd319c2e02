import postgres from "postgres";
import { createTenant } from "../../src/auth/issue.ts";
import { type Db, hostOf } from "../../src/db/connect.ts";
import { plain } from "./our-statements.ts";
import { measure, type Prepared, prepare, type Reading } from "./rows-read.ts";
import type { RanStatement } from "./statement-log.ts";
import { fillTenant } from "./tenant-rows.ts";

/** Of a tenant with few rows of each kind, and of one with many. */
const few = 100;
const many = 50_000;

/** A statement that reads more where the tenant has more, and when. */
export interface Growing {
  when: string;
  statement: RanStatement;
  small: Reading;
  large: Reading;
}

/** Settings that all of the server's connections have. */
const settings = {
  enable_seqscan: "off",
  jit: "off",
  max_parallel_workers_per_gather: "0",
  statement_timeout: "1000",
};

/** Reads as much for many rows of a tenant as for few, but for trees that are deeper. */
const grows = (small: Reading, large: Reading) =>
  large.error !== undefined ||
  large.rows > 2 * small.rows + 200 ||
  large.pages > 4 * small.pages + 200 ||
  large.pairs > 2 * small.pairs + 1000;

/** A tenant that nothing belongs to: for plans that are made before there is any row. */
const nobody = "00000000-0000-4000-8000-000000000000";

/**
 * Runs statements on a database in which nothing gathers statistics, for tenants with few and many rows: planned while
 * all tables were empty, planned without statistics of tables that are full, and with statistics of other tenants alone.
 */
export async function growingStatements(url: string, sql: Db, statements: readonly RanStatement[], rows = many) {
  const sessions: postgres.Sql[] = [];
  const session = (mode: "force_generic_plan" | "force_custom_plan"): Db => {
    const connection = { ...settings, plan_cache_mode: mode };
    const client = postgres(url, { ...hostOf(url), max: 1, fetch_types: false, onnotice() {}, connection } as never);
    sessions.push(client);
    return client as unknown as Db;
  };
  const tenant = async (count: number) => {
    const { id } = await createTenant(sql, `of ${count} ${Math.random()}`);
    await fillTenant(sql, id, count);
    return id;
  };
  const failed = new Map<string, string>();
  const growing: Growing[] = [];
  let measured = 0;

  async function prepareAll(db: Db, tenantId: string): Promise<Prepared[]> {
    const prepared: Prepared[] = [];
    for (const [i, statement] of statements.entries()) {
      const made = await prepare(db, statement, `s${i}`, tenantId);
      if (typeof made !== "string") prepared.push(made);
      else failed.set(statement.text, made);
    }
    return prepared;
  }
  async function look(when: string, db: Db, prepared: readonly Prepared[], small: string, large: string) {
    for (const each of prepared) {
      const little = await measure(db, each, small);
      if (little.error !== undefined) {
        failed.set(each.statement.text, little.error);
        continue;
      }
      measured += 1;
      const much = await measure(db, each, large);
      if (grows(little, much)) growing.push({ when, statement: each.statement, small: little, large: much });
    }
  }

  try {
    await holdStatistics(sql);
    const onEmpty = session("force_generic_plan");
    const early = await prepareAll(onEmpty, nobody);
    const small = await tenant(few);
    const large = await tenant(rows);
    for (const name of ["entities_terms", "entities_text"]) await sql`select gin_clean_pending_list(${name}::regclass)`;
    await look("planned while the tables were empty", onEmpty, early, small, large);
    const custom = session("force_custom_plan");
    const customs = await prepareAll(custom, small);
    await look("no statistics", custom, customs, small, large);
    await sql`analyze`;
    const later = await tenant(rows);
    await look("statistics of other tenants", custom, customs, small, later);
  } finally {
    await Promise.all(sessions.map((each) => each.end({ timeout: 1 })));
  }
  return { measured, failed, growing };
}

/** One line that says what a statement read. */
export function described({ when, statement, small, large }: Growing): string {
  const said = ({ rows, pages, pairs, error }: Reading) => error ?? `${rows} rows, ${pages} pages, ${pairs} pairs`;
  return `${when}: ${said(small)}, then ${said(large)}: ${plain(statement.text).slice(0, 300)} (${statement.file})`;
}

/** A partition for all times, and no gathering of statistics by PostgreSQL itself. */
async function holdStatistics(sql: Db): Promise<void> {
  for (const table of ["metric_chunks", "delivery_history"])
    await sql.unsafe(`create table ${table}_all partition of ${table} for values from (minvalue) to (maxvalue)`);
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
  for (const { name } of tables) await sql.unsafe(`alter table "${name}" set (autovacuum_enabled = false)`);
}
