import { and, eq, type SQL, sql } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { invalidField } from "../errors.ts";
import { credentials, credentialUses, sendableHosts } from "./tables.ts";

/** What uses a credential: a collection of data, or a destination of notifications. */
export interface CredentialUser {
  readonly kind: "collection" | "destination";
  /** Its id or name. */
  readonly id: string;
}

/** What a thing has to fit that uses a credential. */
export interface UsableCredential {
  readonly type: string;
  /** Where its secrets may go: one at least. */
  readonly allowedHosts: readonly string[];
}

/**
 * A credential to use, which stays as it is until the end of the caller's transaction. `bind` binds one without allowedHosts
 * to where it is used, in that transaction.
 * @throws code 3 at `path`, the place of the credential's id in the request, when there is no such credential, or one without secrets
 */
export async function usableCredential(
  db: Db,
  tenantId: string,
  credentialId: string,
  path: string,
  bind: () => Promise<void>,
): Promise<UsableCredential> {
  const own = and(eq(credentials.tenantId, tenantId), eq(credentials.id, credentialId));
  // The lock makes a concurrent deletion wait, which then sees the use.
  const read = (which: SQL | undefined) =>
    orm(db)
      .select({ type: credentials.type, secrets: credentials.secrets, allowedHosts: sendableHosts })
      .from(credentials)
      .where(which)
      .for("share");
  let [row] = await read(and(own, sql`jsonb_array_length(${sendableHosts}) > 0`));
  if (row === undefined) {
    // By a lock of its own, before this one: two of these at once would wait for each other.
    await bind();
    [row] = await read(own);
  }
  if (row === undefined) throw invalidField(path, "must be the id of a stored credential", FieldRule.UNKNOWN_NAME);
  const { secrets, ...credential } = row;
  if (Object.keys(secrets).length === 0)
    throw invalidField(path, "must be the id of a credential that has secrets", FieldRule.SECRET);
  return credential;
}

/**
 * Notes that something uses a credential, which then cannot be deleted, in the caller's transaction, and returns the
 * credential. May be repeated. @throws as usableCredential
 */
export async function useCredential(
  tx: Db,
  tenantId: string,
  credentialId: string,
  { kind, id }: CredentialUser,
  path: string,
  bind: () => Promise<void>,
): Promise<UsableCredential> {
  const credential = await usableCredential(tx, tenantId, credentialId, path, bind);
  await orm(tx).insert(credentialUses).values({ tenantId, credentialId, kind, usedBy: id }).onConflictDoNothing();
  return credential;
}

/** Notes that something uses no credential any more, in the caller's transaction. May be repeated. */
export async function releaseCredentials(tx: Db, tenantId: string, { kind, id }: CredentialUser): Promise<void> {
  const uses = and(eq(credentialUses.tenantId, tenantId), eq(credentialUses.kind, kind), eq(credentialUses.usedBy, id));
  await orm(tx).delete(credentialUses).where(uses);
}

/** The users of one kind of a statement's credential, as a column to select. */
export function usersOf(tenantId: string, kind: CredentialUser["kind"]): SQL<string[]> {
  const users = new QueryBuilder()
    .select({ usedBy: credentialUses.usedBy })
    .from(credentialUses)
    .where(
      and(
        eq(credentialUses.tenantId, tenantId),
        eq(credentialUses.credentialId, credentials.id),
        eq(credentialUses.kind, kind),
      ),
    )
    .orderBy(credentialUses.usedBy);
  return sql<string[]>`array${users}`;
}

/** Reads the ids or names of what uses a credential. */
export async function readUsers(
  db: Db,
  tenantId: string,
  credentialId: string,
  kind: CredentialUser["kind"],
): Promise<string[]> {
  const uses = and(
    eq(credentialUses.tenantId, tenantId),
    eq(credentialUses.credentialId, credentialId),
    eq(credentialUses.kind, kind),
  );
  const rows = await orm(db).select({ usedBy: credentialUses.usedBy }).from(credentialUses).where(uses);
  return rows.map(({ usedBy }) => usedBy);
}
