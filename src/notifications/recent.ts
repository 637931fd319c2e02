import { and, eq, gt, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { databaseNowMs } from "../db/columns.ts";
import { deliveryCounts as counts } from "./sending/tables.ts";

const dayMs = 24 * 3_600_000;

/**
 * How many notifications of the last 24 hours were sent for a rule, by a trigger or to a destination, as a column to
 * select. They are counted in slots of ten minutes, of which the last 144 are summed.
 */
export function recentNotifications(
  about: "rule" | "trigger" | "destination",
  of: Record<"tenantId" | "name", PgColumn>,
) {
  const own = and(
    eq(counts.tenantId, of.tenantId),
    eq(counts.about, about),
    eq(counts.name, of.name),
    gt(counts.slotMs, sql`${databaseNowMs} - ${dayMs}::bigint`),
  );
  return sql<bigint>`(select coalesce(sum(${counts.count}), 0)::bigint from ${counts} where ${own})` as SQL<bigint>;
}
