import { sql } from "drizzle-orm";
import { foreignKey, index, integer, pgTable, primaryKey, uniqueIndex } from "drizzle-orm/pg-core";
import { bigintMs, jsonb, tenantId, text } from "../db/columns.ts";

/** One row the account of a person. */
export const userAccounts = pgTable(
  "user_accounts",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    /** As it was written; unique without regard to case. */
    email: text("email").notNull(),
    /** argon2id in PHC form: never the password. */
    passwordHash: text("password_hash").notNull(),
    /** Empty until it is set. */
    firstName: text("first_name").notNull(),
    lastName: text("last_name").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    uniqueIndex("user_accounts_email").on(table.tenantId, sql`lower(email collate pg_c_utf8)`),
    index("user_accounts_first_name").on(table.tenantId, table.firstName, table.id),
    index("user_accounts_last_name").on(table.tenantId, table.lastName, table.id),
  ],
);

/** One row a group. */
export const userGroups = pgTable(
  "user_groups",
  {
    tenantId: tenantId(),
    name: text("name").notNull(),
    cloudRoles: jsonb("cloud_roles").notNull().$type<string[]>(),
    restrictionFilters: jsonb("restriction_filters").notNull().$type<string[]>(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.name] })],
);

/** One row an account in a group. Both ends are foreign keys, so that no account can name a group that is not there. */
export const userAccountGroups = pgTable(
  "user_account_groups",
  {
    tenantId: tenantId(),
    accountId: text("account_id").notNull(),
    groupName: text("group_name").notNull(),
    /** From 0, in the order in which the account's groups were written. */
    place: integer("place").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.accountId, table.groupName] }),
    foreignKey({
      name: "user_account_groups_account_fk",
      columns: [table.tenantId, table.accountId],
      foreignColumns: [userAccounts.tenantId, userAccounts.id],
    }).onDelete("cascade"),
    foreignKey({
      name: "user_account_groups_group_fk",
      columns: [table.tenantId, table.groupName],
      foreignColumns: [userGroups.tenantId, userGroups.name],
    }).onDelete("cascade"),
    index("user_account_groups_group").on(table.tenantId, table.groupName, table.accountId),
  ],
);
