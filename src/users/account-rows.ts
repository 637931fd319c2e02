import { randomUUIDv7 } from "node:crypto";
import type { UserAccountFilter } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { alreadyExists, invalidField, notFound } from "../errors.ts";
import type { AccountUpdate } from "./account-update.ts";
import { setGroups } from "./memberships.ts";
import type { AccountRow } from "./messages.ts";

const columns = (db: Db) => db`
  id, email, first_name as "firstName", last_name as "lastName", created_ms as "createdMs", updated_ms as "updatedMs",
  array(
    select group_name from user_account_groups m where m.tenant_id = a.tenant_id and m.account_id = a.id order by place
  ) as groups`;

/** How e-mail addresses are told apart: without case, code point by code point. As user_accounts_email has it. */
const sameEmail = (db: Db, email: string) =>
  db`lower(email collate pg_c_utf8) = lower(${email}::text collate pg_c_utf8)`;

/** One account. @throws code 5 */
export async function readAccount(db: Db, tenantId: string, id: string): Promise<AccountRow> {
  const [row] = await db<AccountRow[]>`
    select ${columns(db)} from user_accounts a where tenant_id = ${tenantId} and id = ${id}`;
  if (row === undefined) throw notFound("user account", id);
  return row;
}

/** @throws code 6 when another account than `id` has this e-mail address */
export async function refuseTaken(db: Db, tenantId: string, email: string, id: string | null): Promise<void> {
  // By user_accounts_email.
  const [other] = await db`
    select id from user_accounts
    where tenant_id = ${tenantId} and ${sameEmail(db, email)} and id is distinct from ${id}`;
  if (other !== undefined) throw alreadyExists("user account", email);
}

/** Makes an account, in the caller's transaction. @throws code 6 when the e-mail is taken; code 3 below `groupsPath` for a missing group */
export async function insertAccount(
  tx: Db,
  tenantId: string,
  account: Pick<AccountRow, "email" | "firstName" | "lastName" | "groups"> & { passwordHash: string },
  groupsPath: string,
): Promise<AccountRow> {
  const { email, firstName, lastName, passwordHash } = account;
  const id = randomUUIDv7();
  // Of several at once, the others wait here for the first one's end.
  const [row] = await tx<{ createdMs: bigint }[]>`
    insert into user_accounts
      (tenant_id, id, email, password_hash, first_name, last_name, created_ms, updated_ms)
    select ${tenantId}::uuid, ${id}, ${email}, ${passwordHash}, ${firstName}, ${lastName}, ms, ms
    from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) as now
    on conflict (tenant_id, lower(email collate pg_c_utf8)) do nothing
    returning created_ms as "createdMs"`;
  if (row === undefined) throw alreadyExists("user account", email);
  const groups = account.groups.length === 0 ? [] : await setGroups(tx, tenantId, id, account.groups, groupsPath);
  const { createdMs } = row;
  return { id, email, firstName, lastName, groups, createdMs, updatedMs: createdMs };
}

/**
 * Changes an account, in the caller's transaction. @throws code 5; code 3 for a name that is set already and for a
 * missing group; code 6 for an e-mail that is taken
 */
export async function changeAccount(
  tx: Db,
  tenantId: string,
  id: string,
  update: AccountUpdate,
  passwordHash: string | null,
): Promise<AccountRow> {
  const { account, changed, path } = update;
  const [row] = await tx<(AccountRow & { nowMs: bigint })[]>`
    select ${columns(tx)}, (extract(epoch from clock_timestamp()) * 1000)::bigint as "nowMs"
    from user_accounts a where tenant_id = ${tenantId} and id = ${id} for no key update`;
  if (row === undefined) throw notFound("user account", id);
  if (changed.size === 0) return row;
  for (const name of ["firstName", "lastName"] as const) {
    if (changed.has(name) && row[name] !== "" && row[name] !== account[name]) {
      throw invalidField(path(name), "cannot be changed once it is set");
    }
  }
  if (changed.has("email")) await refuseTaken(tx, tenantId, account.email, id);
  if (changed.has("groups")) await setGroups(tx, tenantId, id, account.groups, path("groups"));
  const next = (name: "email" | "firstName" | "lastName") => (changed.has(name) ? account[name] : row[name]);
  const [now] = await tx<[AccountRow]>`
    update user_accounts a
    set email = ${next("email")}, first_name = ${next("firstName")}, last_name = ${next("lastName")},
      password_hash = coalesce(${passwordHash}, password_hash), updated_ms = ${row.nowMs}
    where tenant_id = ${tenantId} and id = ${id}
    returning ${columns(tx)}`;
  return now;
}

/** Identifiers of the accounts that have all the values given, in order. */
export async function searchIds(
  db: Db,
  tenantId: string,
  { email, firstName, lastName }: Pick<UserAccountFilter, "email" | "firstName" | "lastName">,
): Promise<string[]> {
  const conditions = [db`tenant_id = ${tenantId}`];
  // By user_accounts_email, user_accounts_first_name or user_accounts_last_name.
  if (email !== undefined) conditions.push(sameEmail(db, email));
  if (firstName !== undefined) conditions.push(db`first_name = ${firstName}`);
  if (lastName !== undefined) conditions.push(db`last_name = ${lastName}`);
  const all = conditions.reduce((left, right) => db`${left} and ${right}`);
  const rows = await db<{ id: string }[]>`select id from user_accounts where ${all} order by id`;
  return rows.map(({ id }) => id);
}
