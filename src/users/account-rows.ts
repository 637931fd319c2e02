import { randomUUIDv7 } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { and, eq, exists, ne, sql } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type UserAccount, UserAccountSchema } from "#gen/belfry/users/v1/user_account_pb.ts";
import type { UpdateUserAccountRequest, UserAccountFilter } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { holdNames } from "../db/held-names.ts";
import { orm } from "../db/orm.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { alreadyExists, invalidField, notFound } from "../errors.ts";
import { normalizedName } from "../rpc/name-rules.ts";
import { changedFields } from "../rpc/update-mask.ts";
import type { AccountRow } from "./messages.ts";
import { userAccountGroups, userAccounts, userGroups } from "./tables.ts";

const groupNames = (tenantId: string) =>
  new QueryBuilder()
    .select({ name: userAccountGroups.groupName })
    .from(userAccountGroups)
    .where(and(eq(userAccountGroups.tenantId, tenantId), eq(userAccountGroups.accountId, userAccounts.id)))
    .orderBy(userAccountGroups.place);

const columnsOf = (tenantId: string) => ({
  id: userAccounts.id,
  email: userAccounts.email,
  firstName: userAccounts.firstName,
  lastName: userAccounts.lastName,
  createdMs: userAccounts.createdMs,
  updatedMs: userAccounts.updatedMs,
  groups: sql<string[]>`array${groupNames(tenantId)}`,
});

const identified = (tenantId: string, id: string) => and(eq(userAccounts.tenantId, tenantId), eq(userAccounts.id, id));

/** How e-mail addresses are distinguished: without case, code point by code point. As user_accounts_email has it. */
const sameEmail = (email: string) =>
  sql`lower(${userAccounts.email} collate pg_c_utf8) = lower(${email}::text collate pg_c_utf8)`;

/** One account. @throws code 5 */
export async function readAccount(db: Db, tenantId: string, id: string): Promise<AccountRow> {
  const [row] = await orm(db).select(columnsOf(tenantId)).from(userAccounts).where(identified(tenantId, id));
  if (row === undefined) throw notFound("user account", id);
  return row;
}

/** Accounts by e-mail, of one group or of none in particular. @throws code 3 for a bad page token */
export async function listAccounts(
  db: Db,
  tenantId: string,
  request: { group: string; pageSize: number; pageToken: string },
): Promise<{ accounts: AccountRow[]; nextPageToken: string; totalCount: bigint }> {
  const page = countedPage("user accounts", tenantId, request, request.group);
  const place = page.after && keyTextsOf(page.after, ["text"]);
  const listed = and(
    eq(userAccounts.tenantId, tenantId),
    request.group === "" ? undefined : exists(membership(tenantId, request.group)),
  );
  // By user_accounts_email.
  const byEmail = sql<string>`lower(${userAccounts.email} collate pg_c_utf8)`;
  const [rows, total] = await Promise.all([
    orm(db)
      .select({ ...columnsOf(tenantId), place: byEmail })
      .from(userAccounts)
      .where(and(listed, place && sql`${byEmail} > ${place[0]}`))
      .orderBy(byEmail)
      .limit(page.rowsMax ?? Number.MAX_SAFE_INTEGER),
    page.total(() => orm(db).$count(userAccounts, listed)),
  ]);
  const { items, nextPageToken } = page.cut(rows, (row) => [row.place], total);
  return { accounts: items.map(({ place: _place, ...row }) => row), nextPageToken, totalCount: total };
}

/** That an account is in a group: by the primary key. */
const membership = (tenantId: string, group: string) =>
  new QueryBuilder()
    .select({ name: userAccountGroups.groupName })
    .from(userAccountGroups)
    .where(
      and(
        eq(userAccountGroups.tenantId, tenantId),
        eq(userAccountGroups.accountId, userAccounts.id),
        eq(userAccountGroups.groupName, group),
      ),
    );

/** @throws code 6 when another account than `id` has this e-mail address */
export async function refuseTaken(db: Db, tenantId: string, email: string, id: string | null): Promise<void> {
  // By user_accounts_email.
  const [other] = await orm(db)
    .select({ id: userAccounts.id })
    .from(userAccounts)
    .where(
      and(eq(userAccounts.tenantId, tenantId), sameEmail(email), id === null ? undefined : ne(userAccounts.id, id)),
    );
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
  const times = { createdMs: databaseNowMs, updatedMs: databaseNowMs };
  const [row] = await orm(tx)
    .insert(userAccounts)
    .values({ tenantId, id, email, passwordHash, firstName, lastName, ...times })
    .onConflictDoNothing()
    .returning({ createdMs: userAccounts.createdMs });
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
  const own = identified(tenantId, id);
  const [row] = await orm(tx).select(columnsOf(tenantId)).from(userAccounts).where(own).for("no key update");
  if (row === undefined) throw notFound("user account", id);
  if (changed.size === 0) return row;
  for (const name of ["firstName", "lastName"] as const) {
    if (changed.has(name) && row[name] !== "" && row[name] !== account[name]) {
      throw invalidField(path(name), "cannot be changed once it is set", FieldRule.IMMUTABLE);
    }
  }
  if (changed.has("email")) await refuseTaken(tx, tenantId, account.email, id);
  if (changed.has("groups")) await setGroups(tx, tenantId, id, account.groups, path("groups"));
  const next = (name: "email" | "firstName" | "lastName") => (changed.has(name) ? account[name] : row[name]);
  await orm(tx)
    .update(userAccounts)
    .set({
      email: next("email"),
      firstName: next("firstName"),
      lastName: next("lastName"),
      passwordHash: passwordHash ?? userAccounts.passwordHash,
      updatedMs: databaseNowMs,
    })
    .where(own);
  return await readAccount(tx, tenantId, id);
}

/** Deletes an account, in the caller's transaction. @throws code 5 */
export async function deleteAccount(tx: Db, tenantId: string, id: string): Promise<void> {
  const gone = await orm(tx).delete(userAccounts).where(identified(tenantId, id)).returning({ id: userAccounts.id });
  if (gone.length === 0) throw notFound("user account", id);
}

/** Identifiers of the accounts that have all the values given, in order. */
export async function searchIds(
  db: Db,
  tenantId: string,
  { email, firstName, lastName }: Pick<UserAccountFilter, "email" | "firstName" | "lastName">,
): Promise<string[]> {
  // By user_accounts_email, user_accounts_first_name or user_accounts_last_name.
  const matching = and(
    eq(userAccounts.tenantId, tenantId),
    email === undefined ? undefined : sameEmail(email),
    firstName === undefined ? undefined : eq(userAccounts.firstName, firstName),
    lastName === undefined ? undefined : eq(userAccounts.lastName, lastName),
  );
  const rows = await orm(db)
    .select({ id: userAccounts.id })
    .from(userAccounts)
    .where(matching)
    .orderBy(userAccounts.id);
  return rows.map(({ id }) => id);
}

/** An update of an account, in whichever form it came. */
export interface AccountUpdate {
  /** Holds the new values of the fields in `changed`; the others mean nothing. */
  account: UserAccount;
  changed: ReadonlySet<keyof UserAccount>;
  /** Where a field of the account is in the request. */
  path(field: "email" | "password" | "firstName" | "lastName" | "groups"): string;
}

const inUser = "user.";

/**
 * Reads an update, whose fields are in `user` or beside it. Its mask may name them either way.
 * @throws code 3 for both forms at once, a mask that names what is no field, a required field that is cleared
 */
export function accountUpdate(request: UpdateUserAccountRequest): AccountUpdate {
  const paths = request.updateMask?.paths ?? [];
  const named = paths.filter((path) => path.startsWith(inUser));
  const nested = request.user !== undefined || named.length > 0;
  const { email, password, firstName, lastName, groups } = request;
  const beside = email !== "" || password !== undefined || firstName !== "" || lastName !== "" || groups.length > 0;
  if (nested && (beside || (named.length > 0 && named.length < paths.length))) {
    throw invalidField(
      "user",
      "must not stand beside fields of the account: send them either in it or without it",
      FieldRule.EXCLUDED,
    );
  }
  const account = nested
    ? (request.user ?? create(UserAccountSchema))
    : create(UserAccountSchema, { email, firstName, lastName, groups, ...(password !== undefined && { password }) });
  const bare = paths.map((path) => (path.startsWith(inUser) ? path.slice(inUser.length) : path));
  const changed = changedFields(UserAccountSchema, account, create(FieldMaskSchema, { paths: bare }));
  const path = (field: string) => (nested ? inUser + field : field);
  if (changed.has("email") && account.email === "")
    throw invalidField(path("email"), "is required", FieldRule.REQUIRED);
  if (changed.has("password") && account.password === undefined)
    throw invalidField(path("password"), "is required", FieldRule.REQUIRED);
  return { account, changed, path };
}

/**
 * Puts an account into exactly these groups, in the caller's transaction, and answers them; a name that stands twice counts
 * once. The account's row is locked or new, so that no other transaction does this to it meanwhile.
 * @throws code 3 below `path` that names each group which does not exist
 */
export async function setGroups(
  tx: Db,
  tenantId: string,
  accountId: string,
  names: readonly string[],
  path: string,
): Promise<string[]> {
  const asked = names.map(normalizedName);
  const wanted = [...new Set(asked)];
  await holdNames(tx, tenantId, userGroups, "group", asked, path);
  const own = and(eq(userAccountGroups.tenantId, tenantId), eq(userAccountGroups.accountId, accountId));
  await orm(tx).delete(userAccountGroups).where(own);
  const rows = wanted.map((groupName, place) => ({ tenantId, accountId, groupName, place }));
  if (rows.length > 0) await orm(tx).insert(userAccountGroups).values(rows);
  return wanted;
}
