import { setBounded } from "../bounded-map.ts";
import type { Db } from "../db/connect.ts";
import { unauthenticated } from "../errors.ts";
import { limiter } from "../limiter.ts";
import type { Principal } from "./principal.ts";
import { isToken, parseToken } from "./session-token.ts";
import { noteSessionUse, readSession, type SessionBounds } from "./sessions.ts";

/** Finds the principal of a session's cookie. */
export interface SessionVerifier {
  /** @throws code 16 for one that is malformed, unknown, or has ended; 14 while the database is away. */
  verify(token: string): Principal | Promise<Principal>;
  /** A call of a person came with it. Costs a look into a map. */
  used(principal: Principal): void;
  /** It was ended here: from now on it is refused here. */
  forget(id: string): void;
}

interface Entry {
  /** Null when there is no such session. */
  readonly session: { readonly digest: Buffer; readonly principal: Principal } | null;
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

const ended = () => unauthenticated("the session has ended; log in again");

/** A verifier with a cache of at most a second. A token with a wrong checksum costs no statement. */
export function sessionVerifier({ sql, gate, bounds, onUse = () => {} }: Options): SessionVerifier {
  const entries = new Map<string, Entry>();
  const reads = new Map<string, Promise<Entry>>();
  const places = limiter({ max: readsMax, waitingMax: readsWaitingMax, what: "sessions are being looked up" });
  const notedMs = new Map<string, number>();

  async function read(token: { tenantId: string; id: string }): Promise<Entry> {
    const place = await places.turn({});
    try {
      const readMs = performance.now();
      const row = await gate.run(() => readSession(sql, token, bounds));
      const entry: Entry = { session: null, proven: undefined, readMs };
      if (row === undefined) return entry;
      const { digest, endsMs: _, ...client } = row;
      return { ...entry, session: { digest, principal: { ...client, tenantId: token.tenantId, sessionId: token.id } } };
    } finally {
      place.release();
    }
  }

  /** One read a session at a time; calls that arrive meanwhile share it. */
  function load(token: { tenantId: string; id: string }): Promise<Entry> {
    const running = reads.get(token.id);
    if (running !== undefined) return running;
    const reading = read(token)
      .then((entry) => {
        setBounded(entries, token.id, entry, entriesMax);
        return entry;
      })
      .finally(() => reads.delete(token.id));
    reads.set(token.id, reading);
    return reading;
  }

  function admit(entry: Entry, text: string, tenantId: string): Principal {
    const { session } = entry;
    if (session === null || session.principal.tenantId !== tenantId) throw ended();
    if (entry.proven !== text) {
      if (!isToken(text, session.digest)) throw ended();
      entry.proven = text;
    }
    return session.principal;
  }

  return {
    verify(text) {
      const token = parseToken("bs", text);
      if (token === undefined) throw ended();
      const entry = entries.get(token.id);
      const ageMs = entry === undefined ? Number.POSITIVE_INFINITY : performance.now() - entry.readMs;
      if (entry === undefined || ageMs > staleMs) {
        return load(token).then((fresh) => admit(fresh, text, token.tenantId));
      }
      if (ageMs > refreshMs) load(token).catch(() => {}); // the next call reads it
      return admit(entry, text, token.tenantId);
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
    forget(id) {
      setBounded(entries, id, { session: null, proven: undefined, readMs: performance.now() }, entriesMax);
    },
  };
}
