import { foreignKey, index, pgTable, primaryKey, unique } from "drizzle-orm/pg-core";
import { bigintMs, bytea, tenantId, text } from "../db/columns.ts";
import type { ClientType, Role } from "./principal.ts";

/** One row a tenant, the owner of everything else. */
export const tenants = pgTable("tenants", {
  id: tenantId("id").primaryKey(),
  name: text("name").notNull().unique(),
  createdMs: bigintMs("created_ms").notNull(),
});

/** One row an API client: a program or a person that calls with keys. */
export const apiClients = pgTable(
  "api_clients",
  {
    tenantId: tenantId().references(() => tenants.id),
    id: text("id").notNull(),
    name: text("name").notNull(),
    type: text("type").notNull().$type<ClientType>(),
    role: text("role").$type<Role>(),
    createdMs: bigintMs("created_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    index("api_clients_name").on(table.tenantId, table.name, table.id),
  ],
);

/** One row a key that has not been revoked. Of its secret only the digest is stored. */
export const apiKeys = pgTable(
  "api_keys",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    clientId: text("client_id").notNull(),
    prefix: text("prefix").notNull(),
    digest: bytea("digest").notNull(),
    description: text("description").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    /** The first moment at which the key no longer holds; null for never. */
    expiresMs: bigintMs("expires_ms"),
    /** Coarse. */
    lastUsedMs: bigintMs("last_used_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    unique("api_keys_prefix").on(table.tenantId, table.prefix),
    foreignKey({
      columns: [table.tenantId, table.clientId],
      foreignColumns: [apiClients.tenantId, apiClients.id],
    }).onDelete("cascade"),
    index("api_keys_client").on(table.tenantId, table.clientId, table.id),
  ],
);

/** Prefix → tenant: the one table that is read before the tenant is known. Without a foreign key, so that it may be a reference table. */
export const apiKeyPrefixes = pgTable("api_key_prefixes", {
  prefix: text("prefix").primaryKey(),
  tenantId: tenantId(),
  keyId: text("key_id").notNull(),
});

/** One row a browser that is logged in with a key. Of its cookie and its page's proof one digest is stored. */
export const consoleSessions = pgTable(
  "console_sessions",
  {
    tenantId: tenantId(),
    /** Public. */
    id: text("id").notNull(),
    keyId: text("key_id").notNull(),
    digest: bytea("digest").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    /** To the minute or so. */
    lastUsedMs: bigintMs("last_used_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    foreignKey({ columns: [table.tenantId, table.keyId], foreignColumns: [apiKeys.tenantId, apiKeys.id] }).onDelete(
      "cascade",
    ),
    index("console_sessions_key").on(table.tenantId, table.keyId, table.createdMs, table.id),
  ],
);

/** One row a link that makes a session of a key, once. */
export const consoleLinks = pgTable(
  "console_links",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    keyId: text("key_id").notNull(),
    digest: bytea("digest").notNull(),
    expiresMs: bigintMs("expires_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    foreignKey({ columns: [table.tenantId, table.keyId], foreignColumns: [apiKeys.tenantId, apiKeys.id] }).onDelete(
      "cascade",
    ),
    index("console_links_key").on(table.tenantId, table.keyId),
  ],
);
