import type { Sql } from "../db/connect.ts";
import { hasPartitions, keepPartitions, type PartitionedTable } from "../db/partitions.ts";
import type { Rounds } from "../every.ts";
import type { Log } from "../log.ts";
import { everyAsLeader } from "./leader.ts";

const periodMs = 10 * 60_000;

/**
 * Makes the partitions of these tables before it answers, so that rows can be stored, and keeps making and dropping them
 * every ten minutes where this process leads. What fails is logged, and tried again the next time.
 * @throws when partitions that rows of now need are missing, and cannot be made.
 */
export async function partitionUpkeep(
  sql: Sql,
  tables: readonly PartitionedTable[],
  nowMs: () => number,
  log: Pick<Log, "info" | "error">,
): Promise<Rounds> {
  async function keep(table: PartitionedTable) {
    const { made, dropped } = await keepPartitions(sql, table, nowMs());
    if (made.length + dropped.length > 0) log.info({ made, dropped }, "partitions");
  }
  // Of those that a server finds missing at its start nothing is said: people read its first lines.
  for (const table of tables) {
    await keepPartitions(sql, table, nowMs()).catch(async (err: unknown) => {
      if (!(await hasPartitions(sql, table, nowMs()))) throw err;
      log.error({ err, table: table.table }, "partitions");
    });
  }
  const names = tables.map(({ table }) => table).join(", ");
  return everyAsLeader({ db: sql, name: `partitions of ${names}`, ms: periodMs }, async (going) => {
    for (const table of tables) {
      if (going()) await keep(table).catch((err: unknown) => log.error({ err, table: table.table }, "partitions"));
    }
  });
}
