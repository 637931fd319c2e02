import { and, eq, sql } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { inUse, notFound } from "../errors.ts";
import { allowedHostsColumn, boundHostsColumn, credentials, credentialUses } from "./tables.ts";
import { usersOf } from "./used-by.ts";

/** What a credential holds beside its secrets. */
export interface CredentialValues {
  name: string;
  type: string;
  description: string;
  tags: string[];
  allowedApiClients: string[];
  allowedHosts: string[];
}

/** A credential as it is stored, without its secrets. */
export interface CredentialRow extends CredentialValues {
  id: string;
  boundHosts: string[];
  collections: string[];
  destinations: string[];
}

const columnsOf = (tenantId: string) => ({
  id: credentials.id,
  name: credentials.name,
  type: credentials.type,
  description: credentials.description,
  tags: credentials.tags,
  allowedApiClients: credentials.allowedApiClients,
  allowedHosts: allowedHostsColumn,
  // They hold while the caller allows nothing.
  boundHosts: sql<string[]>`case when ${allowedHostsColumn} = '[]' then ${boundHostsColumn} else '[]' end`,
  collections: usersOf(tenantId, "collection"),
  destinations: usersOf(tenantId, "destination"),
});

const identified = (tenantId: string, id: string) => and(eq(credentials.tenantId, tenantId), eq(credentials.id, id));

/** Stores a credential with its sealed secrets. */
export async function insertCredential(
  db: Db,
  tenantId: string,
  id: string,
  values: CredentialValues,
  secrets: Record<string, string>,
): Promise<CredentialRow> {
  const { name, type, description, tags, allowedApiClients, allowedHosts } = values;
  const own = { id, name, type, description, tags, allowedApiClients, allowedHosts };
  await orm(db)
    .insert(credentials)
    .values({ tenantId, ...own, secrets });
  return { ...own, boundHosts: [], collections: [], destinations: [] };
}

/** Credentials by name and id. @throws code 3 for a bad page token */
export async function listCredentials(
  db: Db,
  tenantId: string,
  request: { pageSize: number; pageToken: string },
): Promise<{ credentials: CredentialRow[]; nextPageToken: string; totalCount: bigint }> {
  const page = countedPage("credentials", tenantId, request, "");
  const place = page.after && keyTextsOf(page.after, ["text", "text"]);
  const all = eq(credentials.tenantId, tenantId);
  // By credentials_name.
  const [rows, total] = await Promise.all([
    orm(db)
      .select(columnsOf(tenantId))
      .from(credentials)
      .where(and(all, place && sql`(${credentials.name}, ${credentials.id}) > (${place[0]}, ${place[1]})`))
      .orderBy(credentials.name, credentials.id)
      .limit(page.rowsMax ?? Number.MAX_SAFE_INTEGER),
    page.total(() => orm(db).$count(credentials, all)),
  ]);
  const { items, nextPageToken } = page.cut(rows, ({ name, id }) => [name, id], total);
  return { credentials: items, nextPageToken, totalCount: total };
}

/** What a credential's secrets are checked by, locked until the caller's transaction ends. @throws code 5 */
export async function lockCredential(
  tx: Db,
  tenantId: string,
  id: string,
): Promise<{ type: string; secretKeys: string[]; allowedHosts: string[]; boundHosts: string[] }> {
  const [row] = await orm(tx)
    .select({
      type: credentials.type,
      secrets: credentials.secrets,
      allowedHosts: allowedHostsColumn,
      boundHosts: boundHostsColumn,
    })
    .from(credentials)
    .where(identified(tenantId, id))
    .for("no key update");
  if (row === undefined) throw notFound("credential", id);
  const { secrets, ...stored } = row;
  return { ...stored, secretKeys: Object.keys(secrets) };
}

/** Replaces a locked credential; without `secrets`, sealed, its own stay where they are bound to. */
export async function updateCredential(
  tx: Db,
  tenantId: string,
  id: string,
  values: CredentialValues,
  secrets: Record<string, string> | undefined,
): Promise<void> {
  const { name, type, description, tags, allowedApiClients, allowedHosts } = values;
  await orm(tx)
    .update(credentials)
    .set({
      name,
      type,
      description,
      tags,
      allowedApiClients,
      allowedHosts,
      ...(secrets && { secrets, boundHosts: null }),
    })
    .where(identified(tenantId, id));
}

/** @throws code 5 */
export async function readCredential(db: Db, tenantId: string, id: string): Promise<CredentialRow> {
  const [row] = await orm(db).select(columnsOf(tenantId)).from(credentials).where(identified(tenantId, id));
  if (row === undefined) throw notFound("credential", id);
  return row;
}

/** Deletes a credential that nothing uses, in the caller's transaction. @throws code 5; code 9 when it is in use */
export async function deleteCredential(tx: Db, tenantId: string, id: string): Promise<void> {
  // Locked first: a concurrent use waits, and then finds it deleted.
  const locked = await orm(tx)
    .select({ id: credentials.id })
    .from(credentials)
    .where(identified(tenantId, id))
    .for("update");
  if (locked.length === 0) throw notFound("credential", id);
  await refuseUsed(tx, tenantId, id);
  await orm(tx).delete(credentials).where(identified(tenantId, id));
}

/** @throws code 9 when something uses a credential, whose row the caller has locked */
export async function refuseUsed(tx: Db, tenantId: string, id: string): Promise<void> {
  const users = await orm(tx)
    .select({ kind: credentialUses.kind, usedBy: credentialUses.usedBy })
    .from(credentialUses)
    .where(and(eq(credentialUses.tenantId, tenantId), eq(credentialUses.credentialId, id)))
    .orderBy(credentialUses.kind, credentialUses.usedBy)
    .limit(4);
  if (users.length > 0) throw inUse("credential", id, named(users));
}

function named(users: readonly { kind: string; usedBy: string }[]): string {
  const names = users.slice(0, 3).map(({ kind, usedBy }) => `${kind} ${JSON.stringify(usedBy)}`);
  return users.length > names.length ? `${names.join(", ")} and others` : names.join(", ");
}
