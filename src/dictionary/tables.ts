import { pgTable, primaryKey } from "drizzle-orm/pg-core";
import { jsonb, tenantId, text } from "../db/columns.ts";

/** One row an entry of a tenant's own. The default layer is no rows: it ships as files. */
export const dictionaryEntries = pgTable(
  "dictionary_entries",
  {
    tenantId: tenantId(),
    /** What it reports: entityField, metric or eventField. */
    kind: text("kind").notNull(),
    name: text("name").notNull(),
    /** The members that the tenant sets, but for the name, by their names in TypeScript; those that are absent are empty. */
    entry: jsonb("entry").notNull().$type<Record<string, unknown>>(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.kind, table.name] })],
);
