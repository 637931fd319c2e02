import { and, count, eq, getTableColumns, gt, isNull, or, sql } from "drizzle-orm";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { textArray } from "../db/batch.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { failedPrecondition, invalidField, notFound } from "../errors.ts";
import type { ClientType, Role } from "./principal.ts";
import { apiClients, apiKeyPrefixes, apiKeys } from "./tables.ts";

/** An API client as it is stored. */
export interface ClientRow {
  id: string;
  name: string;
  type: ClientType;
  role: Role | null;
  createdMs: bigint;
}

const { tenantId: _tenant, ...columns } = getTableColumns(apiClients);
const identified = (tenantId: string, id: string) => and(eq(apiClients.tenantId, tenantId), eq(apiClients.id, id));

/** The role of a client of this type. @throws code 3 at `path` when a USER client has none, or another one has one. */
export function roleOf(type: ClientType, role: string, path: string): Role | null {
  if (type === "USER" && role === "")
    throw invalidField(path, "must be read_only_user, user or manager for a USER client", FieldRule.UNKNOWN_VALUE);
  if (type !== "USER" && role !== "")
    throw invalidField(path, `must be left out for a ${type} client`, FieldRule.EXCLUDED);
  return role === "" ? null : (role as Role);
}

/** One API client. @throws code 5 */
export async function getClient(db: Db, tenantId: string, id: string): Promise<ClientRow> {
  const [row] = await orm(db).select(columns).from(apiClients).where(identified(tenantId, id));
  if (row === undefined) throw notFound("API client", id);
  return row;
}

/** Returns the id of the oldest client of this name and type. */
export async function clientNamed(
  db: Db,
  tenantId: string,
  name: string,
  type: ClientType,
): Promise<string | undefined> {
  const [row] = await orm(db)
    .select({ id: apiClients.id })
    .from(apiClients)
    .where(and(eq(apiClients.tenantId, tenantId), eq(apiClients.name, name), eq(apiClients.type, type)))
    .orderBy(apiClients.createdMs)
    .limit(1);
  return row?.id;
}

/** API clients by name and id. @throws code 3 for a bad page token. */
export async function listClients(
  db: Db,
  tenantId: string,
  request: { pageSize: number; pageToken: string },
): Promise<{ clients: ClientRow[]; nextPageToken: string; totalCount: bigint }> {
  const page = countedPage("API clients", tenantId, request, "");
  const place = page.after && keyTextsOf(page.after, ["text", "text"]);
  const all = eq(apiClients.tenantId, tenantId);
  // By api_clients_name.
  const [rows, total] = await Promise.all([
    orm(db)
      .select(columns)
      .from(apiClients)
      .where(and(all, place && sql`(${apiClients.name}, ${apiClients.id}) > (${place[0]}, ${place[1]})`))
      .orderBy(apiClients.name, apiClients.id)
      .limit(page.rowsMax ?? Number.MAX_SAFE_INTEGER),
    page.total(() => orm(db).$count(apiClients, all)),
  ]);
  const { items, nextPageToken } = page.cut(rows, ({ name, id }) => [name, id], total);
  return { clients: items, nextPageToken, totalCount: total };
}

/**
 * Deletes an API client with its keys, in the caller's transaction. @throws code 5; code 9 when the tenant would be left
 * without a manager key
 */
export async function deleteClient(tx: Db, tenantId: string, id: string): Promise<void> {
  await keepManagerKey(tx, tenantId, async () => {
    const keys = await orm(tx)
      .delete(apiKeys)
      .where(and(eq(apiKeys.tenantId, tenantId), eq(apiKeys.clientId, id)))
      .returning({ prefix: apiKeys.prefix });
    const prefixes = textArray(keys.map(({ prefix }) => prefix));
    const theirs = sql`${apiKeyPrefixes.prefix} = any(${prefixes}::text[])`;
    await orm(tx)
      .delete(apiKeyPrefixes)
      .where(and(theirs, eq(apiKeyPrefixes.tenantId, tenantId)));
    const gone = await orm(tx).delete(apiClients).where(identified(tenantId, id)).returning({ id: apiClients.id });
    if (gone.length === 0) throw notFound("API client", id);
  });
}

/**
 * Runs what takes keys away, within the caller's transaction, and sees to it that the last manager key of the tenant
 * that still holds is not among them. One such change of a tenant runs at a time. @throws code 9
 */
export async function keepManagerKey(tx: Db, tenantId: string, change: () => Promise<void>): Promise<void> {
  // A change that would take the other one waits here. Making keys locks one client, so the two never wait in a circle.
  await orm(tx)
    .select({ id: apiClients.id })
    .from(apiClients)
    .where(and(eq(apiClients.tenantId, tenantId), eq(apiClients.role, "manager")))
    .orderBy(apiClients.id)
    .for("no key update");
  const before = await managerKeys(tx, tenantId);
  await change();
  if (before > 0 && (await managerKeys(tx, tenantId)) === 0) {
    throw failedPrecondition(
      "this is the last manager key of the tenant; create another one first",
      ErrorReason.LAST_MANAGER_KEY,
    );
  }
}

/** Manager keys that have not expired. */
async function managerKeys(tx: Db, tenantId: string): Promise<number> {
  const [row] = await orm(tx)
    .select({ keys: count() })
    .from(apiKeys)
    .innerJoin(apiClients, and(eq(apiClients.tenantId, apiKeys.tenantId), eq(apiClients.id, apiKeys.clientId)))
    .where(
      and(
        eq(apiKeys.tenantId, tenantId),
        eq(apiClients.role, "manager"),
        or(isNull(apiKeys.expiresMs), gt(apiKeys.expiresMs, databaseNowMs)),
      ),
    );
  return row?.keys ?? 0;
}
