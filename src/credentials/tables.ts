import { sql } from "drizzle-orm";
import { boolean, foreignKey, index, pgTable, primaryKey, uniqueIndex } from "drizzle-orm/pg-core";
import { bytea, jsonb, tenantId, text } from "../db/columns.ts";

/**
 * One row a master key that data keys may be wrapped by; the keys themselves are never here. Few rows, of the whole
 * database, on every node.
 */
export const masterKeys = pgTable(
  "master_keys",
  {
    id: text("id").primaryKey(),
    /** Opens with this key and no other, so that a wrong one is reported at the start. */
    proof: bytea("proof").notNull(),
    /** Whether new data keys are wrapped by it: true in one row. */
    current: boolean("current").notNull(),
  },
  (table) => [uniqueIndex("master_keys_current").on(table.current).where(sql`${table.current}`)],
);

/** One row a tenant that has stored a secret: the key of its secrets, wrapped by a master key. */
export const dataKeys = pgTable(
  "data_keys",
  {
    tenantId: tenantId(),
    masterKeyId: text("master_key_id").notNull(),
    wrapped: bytea("wrapped").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId] })],
);

/** One row a credential. */
export const credentials = pgTable(
  "credentials",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    type: text("type").notNull(),
    description: text("description").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
    allowedApiClients: jsonb("allowed_api_clients").notNull().$type<string[]>(),
    /** Null in rows of before 0.2.0: nothing is said. */
    allowedHosts: jsonb("allowed_hosts").$type<string[]>(),
    /** While allowedHosts is empty: the hosts of what used it first. Null: nothing has used it since it has its secrets. */
    boundHosts: jsonb("bound_hosts").$type<string[]>(),
    /** By secret key: sealed by the tenant's data key, base64. */
    secrets: jsonb("secrets").notNull().$type<Record<string, string>>(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    index("credentials_name").on(table.tenantId, table.name, table.id),
  ],
);

/** Selects the hosts that the caller has allowed; empty: none were named. */
export const allowedHostsColumn = sql<string[]>`coalesce(${credentials.allowedHosts}, '[]')`;
/** Selects the hosts that a credential without `allowedHosts` is bound to; empty: nothing has used it. */
export const boundHostsColumn = sql<string[]>`coalesce(${credentials.boundHosts}, '[]')`;
/** The hosts that a credential's secrets may be sent to; empty: nothing is said and nothing has used it. */
export const sendableHosts = sql<
  string[]
>`coalesce(nullif(${credentials.allowedHosts}, '[]'), ${credentials.boundHosts}, '[]')`;

/** One row a thing that uses a credential. The foreign key prevents the deletion of a credential in use. */
export const credentialUses = pgTable(
  "credential_uses",
  {
    tenantId: tenantId(),
    credentialId: text("credential_id").notNull(),
    /** What uses it: collection or destination. */
    kind: text("kind").notNull().$type<"collection" | "destination">(),
    /** Its id or name. */
    usedBy: text("used_by").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.credentialId, table.kind, table.usedBy] }),
    foreignKey({
      name: "credential_uses_credential_fk",
      columns: [table.tenantId, table.credentialId],
      foreignColumns: [credentials.tenantId, credentials.id],
    }),
    index("credential_uses_user").on(table.tenantId, table.kind, table.usedBy),
  ],
);
