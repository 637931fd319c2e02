import { type SQL, sql } from "drizzle-orm";

/**
 * How many notifications of the last 24 hours a row of triggers, destinations or rules has to do with, as a column to
 * select. None is sent yet.
 */
export function recentNotifications(): SQL<bigint> {
  return sql<bigint>`0::bigint`;
}
