import type { ClientType, Role } from "../auth/principal.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, type SortKey } from "../db/paging/keyset.ts";
import { tokenPage } from "../db/paging/token-page.ts";
import { invalidField, notFound } from "../errors.ts";
import { keepManagerKey } from "./manager-keys.ts";

/** An API client as it is stored. */
export interface ClientRow {
  id: string;
  name: string;
  type: ClientType;
  role: Role | null;
  createdMs: bigint;
}

const columns = (db: Db) => db`id, name, type, role, created_ms as "createdMs"`;

/** The role of a client of this type. @throws code 3 at `path` when a USER client has none, or another one has one. */
export function roleOf(type: ClientType, role: string, path: string): Role | null {
  if (type === "USER" && role === "")
    throw invalidField(path, "must be read_only_user, user or manager for a USER client");
  if (type !== "USER" && role !== "") throw invalidField(path, `must be left out for a ${type} client`);
  return role === "" ? null : (role as Role);
}

/** One API client. @throws code 5 */
export async function getClient(db: Db, tenantId: string, id: string): Promise<ClientRow> {
  const [row] = await db<ClientRow[]>`
    select ${columns(db)} from api_clients where tenant_id = ${tenantId} and id = ${id}`;
  if (row === undefined) throw notFound("API client", id);
  return row;
}

/** API clients by name and id. @throws code 3 for a bad page token. */
export async function listClients(
  db: Db,
  tenantId: string,
  request: { pageSize: number; pageToken: string },
): Promise<{ clients: ClientRow[]; nextPageToken: string; totalCount: bigint }> {
  const page = tokenPage("API clients", tenantId, request, "");
  const keys: SortKey[] = [
    { expression: db`name`, type: "text", descending: false },
    { expression: db`id`, type: "text", descending: false },
  ];
  // By api_clients_name.
  const [rows, [counted]] = await Promise.all([
    db<(ClientRow & { keyTexts: (string | null)[] })[]>`
      select ${columns(db)}, ${keyTexts(db, keys)} as "keyTexts" from api_clients
      where tenant_id = ${tenantId} and ${page.after === undefined ? db`true` : beyond(db, keys, page.after)}
      order by name, id limit ${page.rowsMax}`,
    db<{ total: bigint }[]>`select count(*) as total from api_clients where tenant_id = ${tenantId}`,
  ]);
  const { items, nextPageToken } = page.cut(rows, (row) => row.keyTexts);
  return { clients: items, nextPageToken, totalCount: counted?.total ?? 0n };
}

/**
 * Deletes an API client with its keys, in the caller's transaction. @throws code 5; code 9 when the tenant would be left
 * without a manager key
 */
export async function deleteClient(tx: Db, tenantId: string, id: string): Promise<void> {
  await keepManagerKey(tx, tenantId, async () => {
    const keys = await tx<{ prefix: string }[]>`
      delete from api_keys where tenant_id = ${tenantId} and client_id = ${id} returning prefix`;
    await tx`
      delete from api_key_prefixes
      where prefix = any(${textArray(keys.map(({ prefix }) => prefix))}::text[]) and tenant_id = ${tenantId}`;
    const gone = await tx`delete from api_clients where tenant_id = ${tenantId} and id = ${id}`;
    if (gone.count === 0) throw notFound("API client", id);
  });
}
