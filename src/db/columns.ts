import { sql } from "drizzle-orm";
import { bigint, customType, uuid } from "drizzle-orm/pg-core";
import { textArray } from "./batch.ts";

/** Text that orders and compares by code point, whatever the database's locale. */
export const text = customType<{ data: string; driverData: string }>({
  dataType: () => 'text collate "C"',
});

/** A list of such texts. */
export const texts = customType<{ data: string[]; driverData: string[] | string }>({
  dataType: () => 'text[] collate "C"',
  toDriver: (values) => textArray(values),
});

/** Bytes, as a Buffer. */
export const bytea = customType<{ data: Buffer; driverData: Buffer }>({
  dataType: () => "bytea",
});

/** Any JSON value. Sent as text, answered parsed: the rule of connect.ts. Drizzle's own misreads strings such as "5". */
export const jsonb = customType<{ data: unknown; driverData: unknown }>({
  dataType: () => "jsonb",
  toDriver: (value) => JSON.stringify(value),
});

/** The same, kept as it was sent: with NUL in texts, which jsonb refuses, and without an operator to look into it. */
export const jsonColumn = customType<{ data: unknown; driverData: unknown }>({
  dataType: () => "json",
  toDriver: (value) => JSON.stringify(value),
});

/** The first column of every table, of every primary key and of every unique constraint. */
export const tenantId = (name = "tenant_id") => uuid(name).notNull();

/** A time in ms since the epoch, UTC. */
export const bigintMs = (name: string) => bigint(name, { mode: "bigint" });

/** The database's time when the statement began, as a value to store or to compare with: ms since the epoch, UTC. */
export const databaseNowMs = sql<bigint>`(extract(epoch from statement_timestamp()) * 1000)::bigint`;
