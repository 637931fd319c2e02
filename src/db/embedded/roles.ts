import { connectOnce, type Db } from "../connect.ts";

/** The addresses of one embedded database: of the server's own role, and of the superuser. */
export interface Addresses {
  own: string;
  admin: string;
}

/** Asks the server behind the address one thing, in a database of its. */
async function ask<T>(url: string, database: string, fn: (db: Db) => Promise<T>): Promise<T> {
  const { sql, close } = connectOnce(url.replace(/\/\w+$/, `/${database}`), "belfry start");
  try {
    return await fn(sql);
  } finally {
    await close();
  }
}

/** Whether the server at the address lets us in. */
export const answers = (url: string) =>
  ask(url, "postgres", (sql) => sql`select 1`).then(
    () => true,
    () => false,
  );

// Made by ourselves, of hexadecimal digits: no quotes.
const passwordOf = (url: string) => new URL(url).password;

/** Sees to it that the server's own role, which has no rights but on its database, and that database are there. May be repeated. */
export async function prepareDatabase({ own, admin }: Addresses): Promise<void> {
  await ask(admin, "postgres", async (sql) => {
    const [role] = await sql`select from pg_roles where rolname = 'belfry'`;
    if (role === undefined) await sql.unsafe(`create role belfry login password '${passwordOf(own)}'`);
    const [database] = await sql`select from pg_database where datname = 'belfry'`;
    if (database === undefined) await sql`create database belfry owner belfry`;
  });
}
