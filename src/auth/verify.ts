import { timingSafeEqual } from "node:crypto";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { setBounded } from "../bounded-map.ts";
import type { Db } from "../db/connect.ts";
import { unauthenticated } from "../errors.ts";
import { keyDigest, parseKey, prefixOf } from "./key.ts";
import { type KeyOwner, ownerFinder } from "./key-owners.ts";
import type { ClientType, Principal, Role } from "./principal.ts";

/** Finds the principal of a key header. */
export interface KeyVerifier {
  /** @throws code 16 for a key that is missing, malformed, unknown, expired or revoked; 14 while the database is away. */
  verify(headerValue: string | null | undefined): Principal | Promise<Principal>;
}

interface Gate {
  run<T>(fn: () => Promise<T>): Promise<T>;
}

interface Key {
  readonly digest: Buffer;
  readonly principal: Principal;
  /** The text that had this digest, as bytes: comparing it, also in constant time, takes a tenth of digesting it again. */
  proven: Buffer | undefined;
}

interface Entry {
  /** Null when no such key holds. */
  readonly key: Key | null;
  /** Before the statement was sent, so that the entry's age counts from what the database knew. */
  readonly readMs: number;
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

/** An entry is never used beyond this age: a revoked key is refused within a second. */
const staleMs = 900;
/** From this age on it is read again in the background, so that a busy key never waits. */
const refreshMs = 450;
const entriesMax = 10_000;

/**
 * A verifier with a cache of at most a second. A key with a wrong checksum costs no statement, an unknown prefix one a
 * second. `gate` refuses while the database is away.
 */
export function keyVerifier({
  sql,
  gate,
  onUse = () => {},
}: {
  sql: Db;
  gate: Gate;
  /** Notified of every key that was accepted. */
  onUse?: (principal: Principal) => void;
}): KeyVerifier {
  const entries = new Map<string, Entry>();
  const misses = new Map<string, Entry>(); // apart, so that keys tried out push out no good one
  const read = keyReader(sql, gate);
  const reads = new Map<string, Promise<Entry>>();

  /** One read a prefix at a time; calls that arrive meanwhile share it. */
  function load(prefix: string): Promise<Entry> {
    const running = reads.get(prefix);
    if (running !== undefined) return running;
    const readMs = performance.now();
    const reading = read(prefix)
      .then((key) => {
        const entry = { key, readMs };
        if (key === null) entries.delete(prefix);
        setBounded(key === null ? misses : entries, prefix, entry, entriesMax);
        return entry;
      })
      .finally(() => reads.delete(prefix));
    reads.set(prefix, reading);
    return reading;
  }

  function admit({ key }: Entry, text: string): Principal {
    if (key === null || !holds(key, text)) {
      throw unauthenticated("the API key is not valid (unknown, expired or revoked)", ErrorReason.KEY_INVALID);
    }
    onUse(key.principal);
    return key.principal;
  }

  return {
    verify(headerValue) {
      if (headerValue === null || headerValue === undefined || headerValue === "") {
        throw unauthenticated("an API key is needed: send it in the header service-api-key", ErrorReason.KEY_MISSING);
      }
      const entry = entries.get(prefixOf(headerValue)) ?? misses.get(prefixOf(headerValue));
      if (entry?.key && holds(entry.key, headerValue)) {
        const ageMs = performance.now() - entry.readMs;
        if (ageMs <= staleMs) {
          if (ageMs > refreshMs) load(prefixOf(headerValue)).catch(() => {}); // the next call reads it
          onUse(entry.key.principal);
          return entry.key.principal;
        }
      }
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
      if (entry !== undefined && performance.now() - entry.readMs <= staleMs) return admit(entry, headerValue);
      return load(prefix).then((fresh) => admit(fresh, headerValue));
    },
  };
}

/** Reads a key by its prefix; null when no such key holds. Owners are cached, since a prefix never changes its owner. */
function keyReader(sql: Db, gate: Gate): (prefix: string) => Promise<Key | null> {
  const owners = new Map<string, KeyOwner>();
  const findOwner = ownerFinder({ sql, gate });

  async function ownerOf(prefix: string) {
    const known = owners.get(prefix);
    if (known !== undefined) return known;
    const owner = await findOwner(prefix);
    if (owner !== undefined) setBounded(owners, prefix, owner, entriesMax);
    return owner;
  }

  // Two statements, because only the first may leave the tenant open.
  return async (prefix) => {
    const owner = await ownerOf(prefix);
    if (owner === undefined) return null;
    const row = await gate.run(() => readKey(sql, owner));
    if (row === undefined) return null;
    const { digest, ...client } = row;
    return { digest, principal: { tenantId: owner.tenantId, keyId: owner.keyId, ...client }, proven: undefined };
  };
}

function holds(key: Key, text: string): boolean {
  const bytes = Buffer.from(text);
  if (key.proven?.length === bytes.length) return timingSafeEqual(key.proven, bytes);
  if (!timingSafeEqual(key.digest, keyDigest(text))) return false;
  key.proven = bytes;
  return true;
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
