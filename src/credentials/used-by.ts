import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import { invalidField } from "../errors.ts";

/** What uses a credential: a collection of data, or a destination of notifications. */
export interface CredentialUser {
  readonly kind: "collection" | "destination";
  /** Its id or name. */
  readonly id: string;
}

/**
 * Notes that something uses a credential, which then cannot be deleted, in the caller's transaction. May be repeated.
 * @throws code 3 at `path`, the place of the credential's id in the request, when there is no such credential
 */
export async function useCredential(
  tx: Db,
  tenantId: string,
  credentialId: string,
  { kind, id }: CredentialUser,
  path: string,
): Promise<void> {
  // The lock makes a deletion at the same time wait, and then see this use.
  const there = await tx`
    select 1 from credentials where tenant_id = ${tenantId} and id = ${credentialId} for key share`;
  if (there.length === 0) throw invalidField(path, "must be the id of a stored credential");
  await tx`
    insert into credential_uses (tenant_id, credential_id, kind, used_by)
    values (${tenantId}, ${credentialId}, ${kind}, ${id}) on conflict do nothing`;
}

/** Notes that something uses no credential any more, in the caller's transaction. May be repeated. */
export async function releaseCredentials(tx: Db, tenantId: string, { kind, id }: CredentialUser): Promise<void> {
  await tx`delete from credential_uses where tenant_id = ${tenantId} and kind = ${kind} and used_by = ${id}`;
}

/** The users of one kind of the credential `c` of a statement, as an array column to select. */
export function usersOf(db: Db, kind: CredentialUser["kind"]): Fragment {
  return db`array(
    select u.used_by from credential_uses u
    where u.tenant_id = c.tenant_id and u.credential_id = c.id and u.kind = ${kind} order by u.used_by)`;
}
