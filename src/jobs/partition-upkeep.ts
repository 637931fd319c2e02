import type { Sql } from "../db/connect.ts";
import { isConnectionLost } from "../db/driver/connection-errors.ts";
import { hasPartitions, keepPartitions, type PartitionedTable } from "../db/partitions.ts";
import type { Rounds } from "../every.ts";
import type { Log } from "../log.ts";
import { everyAsLeader } from "./leader.ts";

const periodMs = 10 * 60_000;

/**
 * Makes the partitions of these tables before it answers, so that rows can be stored, and keeps making and dropping them
 * every ten minutes where this process leads. What fails is tried again the next time, and logged unless the database was away.
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
  // They are made for days ahead: where the database is away the next time is soon enough, and calls say so.
  function failed({ table }: PartitionedTable, err: unknown) {
    if (!isConnectionLost(err)) log.error({ err, table }, "partitions");
  }
  // Of those that a server finds missing at its start nothing is said: people read its first lines.
  for (const table of tables) {
    await keepPartitions(sql, table, nowMs()).catch(async (err: unknown) => {
      if (!(await hasPartitions(sql, table, nowMs()))) throw err;
      failed(table, err);
    });
  }
  const names = tables.map(({ table }) => table).join(", ");
  return everyAsLeader({ db: sql, name: `partitions of ${names}`, ms: periodMs }, async (going) => {
    for (const table of tables) {
      if (going()) await keep(table).catch((err: unknown) => failed(table, err));
    }
  });
}
