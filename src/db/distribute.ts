import { connectOnce, type Sql } from "./connect.ts";
import { distributeTables, withLocalRows } from "./distribution.ts";
import { lockMigrations } from "./migrate.ts";
import { sessionName } from "./session-name.ts";
import { StartError } from "./start-error.ts";
import { transaction } from "./transaction.ts";

/** What has been distributed. */
export interface Distribution {
  tables: string[];
  /** What works, but not as well as it could, a line each. */
  notes: string[];
}

/**
 * Distributes the tables of a migrated database over the workers of its Citus cluster by tenant, all or none, with what is in them.
 * May be repeated: what is distributed stays as it is.
 * @param shards how many parts each table is divided into; once it is distributed the number stays
 * @throws StartError that names each thing that the cluster lacks
 */
export async function distribute(url: string, shards: number): Promise<Distribution> {
  const { sql, close } = connectOnce(url, sessionName("distribute"));
  try {
    const { lacks, notes } = await clusterFaults(sql);
    if (lacks.length > 0) throw new StartError(`the tables cannot be distributed:\n${lacks.join("\n")}`);
    await lockMigrations(sql);
    const tables = await transaction(sql, (tx) => distributeTables(tx, shards));
    // What was in a table before stays in it on the coordinator, where nothing reads it any more; also of a run that failed here.
    for (const table of await withLocalRows(sql))
      await sql`select truncate_local_data_after_distributing_table(${table}::text::regclass)`;
    return { tables, notes };
  } finally {
    await close();
  }
}

/** What a cluster lacks, without which nothing can be distributed, and what had better be otherwise. */
async function clusterFaults(sql: Sql): Promise<{ lacks: string[]; notes: string[] }> {
  const [has] = await sql<[{ version: string | null }]>`
    select (select extversion from pg_extension where extname = 'citus') as version`;
  if (has.version === null) {
    return { lacks: ["the extension citus is not in this database: create extension citus, on every node"], notes: [] };
  }
  const lacks: string[] = [];
  const notes: string[] = [];
  if (Number.parseInt(has.version, 10) < 13) lacks.push(`Citus ${has.version} is too old: 13 or newer is needed`);
  const [nodes] = await sql<[{ coordinator: boolean; workers: bigint }]>`
    select coalesce(bool_or(groupid = 0), false) as coordinator,
      count(*) filter (where groupid > 0 and shouldhaveshards and isactive) as workers
    from pg_dist_node`;
  if (!nodes.coordinator) {
    lacks.push("the coordinator does not know its own address: select citus_set_coordinator_host(<host>, <port>)");
  }
  if (nodes.workers === 0n) lacks.push("there is no worker: select citus_add_node(<host>, <port>) for each");
  const [settings] = await sql<[{ prepared: number; wal: string; plugins: string | null }]>`
    select current_setting('max_prepared_transactions')::int4 as prepared, current_setting('wal_level') as wal,
      current_setting('output_plugin_libraries', true) as plugins`;
  if (settings.prepared === 0) {
    lacks.push("max_prepared_transactions is 0: set it to max_connections or more, on every node");
  }
  if (settings.wal !== "logical")
    notes.push("wal_level is not logical: shards can be moved only while nothing writes to them");
  const { plugins } = settings;
  if (plugins !== null && !/\bcitus\b/.test(plugins)) {
    notes.push("output_plugin_libraries has no citus: shards cannot be split while they are in use");
  }
  return { lacks, notes };
}
