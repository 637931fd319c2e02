import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { setBounded } from "../bounded-map.ts";
import type { Db } from "../db/connect.ts";
import { unauthenticated } from "../errors.ts";
import { limiter } from "../limiter.ts";
import type { Principal } from "./principal.ts";
import { isToken, parseToken, type Token } from "./session-token.ts";
import { noteSessionUse, readSession, type SessionBounds } from "./sessions.ts";
import { networkOf } from "./wrong-keys.ts";

/** Finds the principal of a session. */
export interface SessionVerifier {
  /**
   * `session` is a token with its proof, as `provenSession` gives it.
   * @throws code 16 for one that is malformed, unknown, or has ended; 14 while the database is away; 8 when too many unknown ones,
   * of all or of this address, wait to be looked up.
   */
  verify(session: string, address?: string): Principal | Promise<Principal>;
  /** A call of a person came with it. Costs a look into a map. */
  used(principal: Principal): void;
  /** It was ended here: from now on it is refused here. */
  forget(tenantId: string, id: string): void;
}

/** What a token names. */
type Named = Omit<Token, "digest">;

/** A session that holds. */
interface Entry {
  readonly digest: Buffer;
  readonly principal: Principal;
  /** The text that had this digest. */
  proven: string | undefined;
  /** Before the statement was sent. */
  readonly readMs: number;
}

interface Options {
  sql: Db;
  gate: { run<T>(fn: () => Promise<T>): Promise<T> };
  bounds: SessionBounds;
  /** Notes the use of a session. */
  onUse?(principal: Principal): void;
}

/** As for keys (src/auth/verify.ts): what has ended is refused within a second. */
const staleMs = 900;
const refreshMs = 450;
const entriesMax = 10_000;
const useNotedMs = 60_000;
// Tokens that are tried out wait for each other, and take no further connections.
const readsMax = 2;
const readsWaitingMax = 1000;

const nameOf = ({ tenantId, id }: Named) => `${tenantId} ${id}`;
const ended = () => unauthenticated("the session has ended; log in again", ErrorReason.SESSION_ENDED);

/** A verifier with a cache of at most a second. A token with a wrong checksum costs no statement. */
export function sessionVerifier({ sql, gate, bounds, onUse = () => {} }: Options): SessionVerifier {
  const entries = new Map<string, Entry>();
  const missesMs = new Map<string, number>(); // apart, so that tokens tried out push out no good one
  const reads = new Map<string, Promise<Entry | undefined>>();
  const places = limiter({ max: readsMax, waitingMax: readsWaitingMax, what: "sessions are being looked up" });
  const notedMs = new Map<string, number>();

  async function read(token: Named): Promise<Entry | undefined> {
    const readMs = performance.now();
    const row = await gate.run(() => readSession(sql, token, bounds));
    if (row === undefined) {
      miss(nameOf(token), readMs);
      return undefined;
    }
    const { digest, endsMs: _, ...client } = row;
    const principal = { ...client, tenantId: token.tenantId, sessionId: token.id };
    const entry: Entry = { digest, principal, proven: undefined, readMs };
    setBounded(entries, nameOf(token), entry, entriesMax);
    return entry;
  }

  function miss(name: string, readMs: number) {
    entries.delete(name);
    setBounded(missesMs, name, readMs, entriesMax);
  }

  async function readInTurn(token: Named, address: string): Promise<Entry | undefined> {
    const place = await places.turn({ address: networkOf(address) });
    try {
      return await read(token);
    } finally {
      place.release();
    }
  }

  /** One read a session at a time; calls that arrive meanwhile share it. */
  function load(token: Named, reading: () => Promise<Entry | undefined>): Promise<Entry | undefined> {
    const name = nameOf(token);
    const running = reads.get(name);
    if (running !== undefined) return running;
    const begun = reading().finally(() => reads.delete(name));
    reads.set(name, begun);
    return begun;
  }

  return {
    verify(text, address = "") {
      const [named = ""] = text.split("\n", 1);
      const token = parseToken("bs", named);
      if (token === undefined) throw ended();
      const name = nameOf(token);
      const entry = entries.get(name);
      if (entry === undefined) {
        const missMs = missesMs.get(name);
        if (missMs !== undefined && performance.now() - missMs <= staleMs) throw ended();
        return load(token, () => readInTurn(token, address)).then((found) => admit(found, text));
      }
      const principal = admit(entry, text);
      const ageMs = performance.now() - entry.readMs;
      // Who has a session does not wait among those who try tokens out.
      if (ageMs > staleMs) return load(token, () => read(token)).then((fresh) => admit(fresh, text));
      if (ageMs > refreshMs) load(token, () => read(token)).catch(() => {}); // the next call reads it
      return principal;
    },
    used(principal) {
      const { sessionId: id, tenantId } = principal;
      if (id === undefined) return;
      onUse(principal);
      const now = performance.now();
      const before = notedMs.get(id);
      if (before !== undefined && now - before < useNotedMs) return;
      setBounded(notedMs, id, now, entriesMax);
      gate.run(() => noteSessionUse(sql, { tenantId, id })).catch(() => notedMs.delete(id));
    },
    forget(tenantId, id) {
      miss(nameOf({ tenantId, id }), performance.now());
    },
  };
}

/** @throws code 16 when the text is not the session's */
function admit(entry: Entry | undefined, text: string): Principal {
  if (entry === undefined) throw ended();
  if (entry.proven !== text) {
    if (!isToken(text, entry.digest)) throw ended();
    entry.proven = text;
  }
  return entry.principal;
}
