import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, type SortKey } from "../db/paging/keyset.ts";
import { tokenPage } from "../db/paging/token-page.ts";
import { inUse, notFound } from "../errors.ts";
import { usersOf } from "./used-by.ts";

/** What a credential holds beside its secrets. */
export interface CredentialValues {
  name: string;
  type: string;
  description: string;
  tags: string[];
  allowedApiClients: string[];
}

/** A credential as it is stored, without its secrets. */
export interface CredentialRow extends CredentialValues {
  id: string;
  collections: string[];
  destinations: string[];
}

const columns = (db: Db) => db`
  c.id, c.name, c.type, c.description, c.tags, c.allowed_api_clients as "allowedApiClients",
  ${usersOf(db, "collection")} as collections, ${usersOf(db, "destination")} as destinations`;

/** Stores a credential with its sealed secrets. */
export async function insertCredential(
  db: Db,
  tenantId: string,
  id: string,
  values: CredentialValues,
  sealed: Readonly<Record<string, string>>,
): Promise<CredentialRow> {
  const { name, type, description, tags, allowedApiClients } = values;
  await db`
    insert into credentials (tenant_id, id, name, type, description, tags, allowed_api_clients, secrets)
    values (${tenantId}, ${id}, ${name}, ${type}, ${description}, ${JSON.stringify(tags)},
      ${JSON.stringify(allowedApiClients)}, ${JSON.stringify(sealed)})`;
  return { id, name, type, description, tags, allowedApiClients, collections: [], destinations: [] };
}

/** Credentials by name and id. @throws code 3 for a bad page token */
export async function listCredentials(
  db: Db,
  tenantId: string,
  request: { pageSize: number; pageToken: string },
): Promise<{ credentials: CredentialRow[]; nextPageToken: string; totalCount: bigint }> {
  const page = tokenPage("credentials", tenantId, request, "");
  const keys: SortKey[] = [
    { expression: db`c.name`, type: "text", descending: false },
    { expression: db`c.id`, type: "text", descending: false },
  ];
  // By credentials_name.
  const [rows, [counted]] = await Promise.all([
    db<(CredentialRow & { keyTexts: (string | null)[] })[]>`
      select ${columns(db)}, ${keyTexts(db, keys)} as "keyTexts" from credentials c
      where c.tenant_id = ${tenantId} and ${page.after === undefined ? db`true` : beyond(db, keys, page.after)}
      order by c.name, c.id limit ${page.rowsMax}`,
    db<{ total: bigint }[]>`select count(*) as total from credentials where tenant_id = ${tenantId}`,
  ]);
  const { items, nextPageToken } = page.cut(rows, (row) => row.keyTexts);
  return { credentials: items, nextPageToken, totalCount: counted?.total ?? 0n };
}

/** The type of a credential and the keys of its secrets, locked until the caller's transaction ends. @throws code 5 */
export async function lockCredential(
  tx: Db,
  tenantId: string,
  id: string,
): Promise<{ type: string; secretKeys: string[] }> {
  const [row] = await tx<{ type: string; secretKeys: string[] }[]>`
    select type, array(select jsonb_object_keys(secrets)) as "secretKeys" from credentials
    where tenant_id = ${tenantId} and id = ${id} for no key update`;
  if (row === undefined) throw notFound("credential", id);
  return row;
}

/** Replaces a locked credential; without `sealed` its secrets stay. @throws code 5 */
export async function updateCredential(
  tx: Db,
  tenantId: string,
  id: string,
  values: CredentialValues,
  sealed: Readonly<Record<string, string>> | undefined,
): Promise<CredentialRow> {
  const { name, type, description, tags, allowedApiClients } = values;
  const [row] = await tx<CredentialRow[]>`
    update credentials c
    set name = ${name}, type = ${type}, description = ${description}, tags = ${JSON.stringify(tags)},
      allowed_api_clients = ${JSON.stringify(allowedApiClients)}
      ${sealed === undefined ? tx`` : tx`, secrets = ${JSON.stringify(sealed)}`}
    where c.tenant_id = ${tenantId} and c.id = ${id} returning ${columns(tx)}`;
  if (row === undefined) throw notFound("credential", id);
  return row;
}

/** Deletes a credential that nothing uses, in the caller's transaction. @throws code 5; code 9 when it is in use */
export async function deleteCredential(tx: Db, tenantId: string, id: string): Promise<void> {
  // Locked first: who begins to use it meanwhile waits, and then finds it gone.
  const locked = await tx`select 1 from credentials where tenant_id = ${tenantId} and id = ${id} for update`;
  if (locked.length === 0) throw notFound("credential", id);
  const users = await tx<{ kind: string; usedBy: string }[]>`
    select kind, used_by as "usedBy" from credential_uses
    where tenant_id = ${tenantId} and credential_id = ${id} order by kind, used_by limit 4`;
  if (users.length > 0) throw inUse("credential", id, named(users));
  await tx`delete from credentials where tenant_id = ${tenantId} and id = ${id}`;
}

function named(users: readonly { kind: string; usedBy: string }[]): string {
  const names = users.slice(0, 3).map(({ kind, usedBy }) => `${kind} ${JSON.stringify(usedBy)}`);
  return users.length > names.length ? `${names.join(", ")} and others` : names.join(", ");
}
