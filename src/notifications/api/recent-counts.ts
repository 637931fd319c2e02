import { and, eq, gt, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { databaseNowMs } from "../../db/columns.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { deliveryCounts as counts } from "../queue/tables.ts";

const dayMs = 24 * 3_600_000;
/** `failed`: what failed, by the name of its destination. */
type About = "rule" | "trigger" | "destination" | "failed";

/** Forgets the counts of what is deleted: they are not those of another one of its name. */
export async function forgetCounts(tx: Db, tenantId: string, about: About, name: string): Promise<void> {
  await orm(tx)
    .delete(counts)
    .where(and(eq(counts.tenantId, tenantId), eq(counts.about, about), eq(counts.name, name)));
}

/**
 * How many notifications of the last 24 hours were sent for a rule, by a trigger or to a destination, as a column to
 * select. They are counted in slots of ten minutes, of which the last 144 are summed.
 */
export function recentNotifications(tenantId: string, about: About, of: Record<"name", PgColumn>) {
  const own = and(
    eq(counts.tenantId, tenantId),
    eq(counts.about, about),
    eq(counts.name, of.name),
    gt(counts.slotMs, sql`${databaseNowMs} - ${dayMs}::bigint`),
  );
  return sql<bigint>`(select coalesce(sum(${counts.count}), 0)::bigint from ${counts} where ${own})` as SQL<bigint>;
}
