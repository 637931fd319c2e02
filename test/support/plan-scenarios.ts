import postgres from "postgres";
import { createTenant } from "../../src/auth/create-tenant.ts";
import { addressOptions, type Db } from "../../src/db/connect.ts";
import { sessionName } from "../../src/db/session-name.ts";
import { plain } from "./our-statements.ts";
import { measure, type Prepared, prepare, type Reading } from "./rows-read.ts";
import { type RanStatement, withoutValues } from "./statement-log.ts";
import { fillTenant } from "./tenant-rows.ts";

/**
 * Rows of each kind that a tenant with few and one with many have. Few are more than the ids that the parameters of a statement may
 * name (`charactersMax` of collect-statements.ts): else the tenant with many alone has all of them, and reads more for no fault.
 */
const few = 250;
const many = 20_000;

/** A statement that reads more where the tenant has more, and when. */
export interface Growing {
  when: string;
  statement: RanStatement;
  small: Reading;
  large: Reading;
}

/** Settings that all of the server's connections have (src/db/connect.ts). The timeout ends only what joins each row with each. */
export const settings = {
  enable_seqscan: "off",
  jit: "off",
  max_parallel_workers_per_gather: "0",
  statement_timeout: "20000",
};
const ofAll = { ...settings, plan_cache_mode: "force_generic_plan" };
/** Those that never plan with values have these besides, and keep their plans. */
const plannedOnce = {
  ...ofAll,
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_sort: "off",
  enable_incremental_sort: "off",
};
const isPlannedOnce = ({ connections = [] }: RanStatement) =>
  connections.some((name) => name === sessionName("ingest") || name === sessionName("sending"));

/** Those that others plan without values alone. */
const isWithoutValues = ({ connections = [] }: RanStatement) =>
  connections.length > 0 && connections.every((name) => name.endsWith(withoutValues));

/**
 * Whether a statement reads more for many rows of a tenant than for few, beyond trees that are deeper. Pages show what walks
 * through an index without taking its entries; a write has more of them in indexes of many terms.
 */
const grows = ({ text }: RanStatement, small: Reading, large: Reading) =>
  large.error !== undefined ||
  large.rows > 2 * small.rows + 200 ||
  (large.pages > 4 * small.pages + 200 && /^\s*select\b/i.test(text)) ||
  large.pairs > 2 * small.pairs + 1000;

/** A tenant that nothing belongs to: for plans that are made before there is any row. */
const nobody = "00000000-0000-4000-8000-000000000000";

/**
 * Runs statements on a database in which nothing gathers statistics, for tenants with few and many rows: planned while
 * all tables were empty, where plans are kept; without statistics of tables that are full; with statistics; and with those of other
 * tenants alone, with and without the values. `among`: these tables alone have rows.
 */
export async function growingStatements(
  url: string,
  sql: Db,
  statements: readonly RanStatement[],
  among?: readonly string[],
) {
  const sessions: postgres.Sql[] = [];
  const session = (connection: object): Db => {
    const client = sessionOf(url, connection);
    sessions.push(client);
    return client as unknown as Db;
  };
  const tenant = async (count: number) => {
    const { id } = await createTenant(sql, `of ${count} ${Math.random()}`);
    await fillTenant(sql, id, count, among);
    return id;
  };
  const failed = new Map<string, string>();
  const growing: Growing[] = [];
  let measured = 0;

  async function prepareAll(db: Db, some: readonly RanStatement[], tenantId: string) {
    const prepared: Prepared[] = [];
    for (const [i, statement] of some.entries()) {
      const made = await prepare(db, statement, `s${i}`, tenantId);
      if (typeof made !== "string") prepared.push(made);
      else failed.set(statement.text, made);
    }
    return { db, prepared };
  }
  async function look(when: string, { db, prepared }: { db: Db; prepared: Prepared[] }, small: string, large: string) {
    for (const each of prepared) {
      const little = await measure(db, each, small);
      if (little.error !== undefined) {
        failed.set(each.statement.text, little.error);
        continue;
      }
      measured += 1;
      const much = await measure(db, each, large);
      if (grows(each.statement, little, much))
        growing.push({ when, statement: each.statement, small: little, large: much });
    }
  }

  try {
    await holdStatistics(sql);
    const once = statements.filter(isPlannedOnce);
    const others = statements.filter((statement) => !isPlannedOnce(statement));
    const withValues = others.filter((statement) => !isWithoutValues(statement));
    const kept = await prepareAll(session(plannedOnce), once, nobody);
    const small = await tenant(few);
    const large = await tenant(many);
    for (const name of ["entities_terms", "entities_text"]) await sql`select gin_clean_pending_list(${name}::regclass)`;
    await look("planned while the tables were empty", kept, small, large);
    const generic = await prepareAll(session(ofAll), others, small);
    const custom = await prepareAll(session({ ...settings, plan_cache_mode: "force_custom_plan" }), withValues, small);
    await look("no statistics, without values", generic, small, large);
    await look("no statistics", custom, small, large);
    await sql`analyze`;
    await look("statistics, without values", generic, small, large);
    await look("statistics", custom, small, large);
    const later = await tenant(many / 2);
    await look("statistics of other tenants, planned once", kept, small, later);
    await look("statistics of other tenants, without values", generic, small, later);
    await look("statistics of other tenants", custom, small, later);
  } finally {
    await Promise.all(sessions.map((each) => each.end({ timeout: 1 })));
  }
  return { measured, failed, growing };
}

/** A connection of its own, with settings. */
export const sessionOf = (url: string, connection: object) =>
  postgres(url, { ...addressOptions(url), max: 1, fetch_types: false, onnotice() {}, connection } as never);

/** One line that says what a statement read. */
export function described({ when, statement, small, large }: Growing): string {
  const said = ({ rows, pages, pairs, error }: Reading) => error ?? `${rows} rows, ${pages} pages, ${pairs} pairs`;
  return `${when}: ${said(small)}, then ${said(large)}: ${plain(statement.text).slice(0, 300)} (${statement.file})`;
}

/** A partition for all times, and no gathering of statistics by PostgreSQL itself. */
async function holdStatistics(sql: Db): Promise<void> {
  for (const table of ["metric_chunks", "delivery_history"])
    await sql.unsafe(`create table ${table}_all partition of ${table} for values from (minvalue) to (maxvalue)`);
  await stopAutovacuum(sql);
}

/** Has PostgreSQL gather no statistics by itself. */
export async function stopAutovacuum(sql: Db): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
  for (const { name } of tables) await sql.unsafe(`alter table "${name}" set (autovacuum_enabled = false)`);
}
