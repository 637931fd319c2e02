import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Db } from "../db/connect.ts";
import { unauthenticated } from "../errors.ts";
import { freshCache } from "./fresh-cache.ts";
import { parseKey, prefixOf } from "./key.ts";
import type { ClientType, Principal, Role } from "./principal.ts";

/** Finds the principal of a key header. */
export interface KeyVerifier {
  /**
   * @throws code 16 for a key that is missing, malformed, unknown, expired or revoked; 14 while the database is away; 8 when too many
   * unknown ones, of all or of this address, wait to be looked up
   */
  verify(headerValue: string | null | undefined, address?: string): Principal | Promise<Principal>;
}

/** The owner of a key, found by its prefix. */
export interface KeyOwner {
  readonly tenantId: string;
  readonly keyId: string;
}

/** What is stored of a key that holds, and of its client. */
export interface KeyRow {
  digest: Buffer;
  keyPrefix: string;
  clientId: string;
  clientName: string;
  clientType: ClientType;
  role: Role | null;
  tenantName: string;
}

interface Options {
  sql: Db;
  /** Refuses while the database is away. */
  gate: { run<T>(fn: () => Promise<T>): Promise<T> };
  /** Notified of every key that was accepted. */
  onUse?(principal: Principal): void;
  nowMs?: () => number;
}

/** A verifier of keys. A key with a wrong checksum costs no statement, an unknown prefix one a second. */
export function keyVerifier({ sql, gate, onUse = () => {}, nowMs }: Options): KeyVerifier {
  const cache = freshCache({
    nameOf: (prefix: string) => prefix,
    // Two statements, because only the first may leave the tenant open. A prefix never changes its owner.
    async read(prefix, before) {
      const owner = before ?? (await gate.run(() => ownerOfKey(sql, prefix)));
      if (owner === undefined) return undefined;
      const { tenantId, keyId } = owner;
      const row = await gate.run(() => readKey(sql, { tenantId, keyId }));
      if (row === undefined) return undefined;
      const { digest, ...client } = row;
      return { digest, principal: { tenantId, keyId, ...client } };
    },
    refused: () => unauthenticated("the API key is not valid (unknown, expired or revoked)", ErrorReason.KEY_INVALID),
    what: "keys",
    nowMs,
  });

  function used(principal: Principal): Principal {
    onUse(principal);
    return principal;
  }

  return {
    verify(headerValue, address) {
      if (headerValue === null || headerValue === undefined || headerValue === "") {
        throw unauthenticated(
          "an API key is needed: send it in the header service-api-key, or as Authorization: Bearer",
          ErrorReason.KEY_MISSING,
        );
      }
      const known = cache.known(prefixOf(headerValue), headerValue);
      if (known !== undefined) return used(known);
      // Only what was not known a moment ago is looked at more closely.
      const prefix = parseKey(headerValue);
      if (headerValue.includes(", "))
        throw unauthenticated("the request has more than one API key; send one", ErrorReason.KEY_AMBIGUOUS);
      if (prefix === undefined) {
        throw unauthenticated(
          "the API key is mistyped or cut short: its form or checksum is wrong",
          ErrorReason.KEY_MALFORMED,
        );
      }
      const found = cache.find(prefix, headerValue, address);
      return found instanceof Promise ? found.then(used) : used(found);
    },
  };
}

/** Returns the owner of the key with this prefix; undefined when there is none, or it was revoked. */
export async function ownerOfKey(db: Db, prefix: string): Promise<KeyOwner | undefined> {
  const [row] = await db<KeyOwner[]>`
    select tenant_id as "tenantId", key_id as "keyId" from api_key_prefixes where prefix = ${prefix}`;
  return row;
}

/** A key with its client; undefined when it is revoked or expired. */
export async function readKey(sql: Db, { tenantId, keyId }: KeyOwner): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow[]>`
    select k.digest, k.prefix as "keyPrefix", c.id as "clientId", c.name as "clientName", c.type as "clientType", c.role, t.name as "tenantName"
    from api_keys k
    join api_clients c on c.tenant_id = k.tenant_id and c.id = k.client_id
    join tenants t on t.id = k.tenant_id
    where k.tenant_id = ${tenantId} and k.id = ${keyId}
      and (k.expires_ms is null or k.expires_ms > (extract(epoch from clock_timestamp()) * 1000)::bigint)`;
  return row;
}
