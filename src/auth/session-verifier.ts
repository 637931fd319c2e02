import { LRUCache } from "lru-cache";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Db } from "../db/connect.ts";
import { unauthenticated } from "../errors.ts";
import { freshCache } from "./fresh-cache.ts";
import type { Principal } from "./principal.ts";
import { parseToken, type Token } from "./session-token.ts";
import { noteSessionUse, readSession, type SessionBounds } from "./sessions.ts";

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

interface Options {
  sql: Db;
  gate: { run<T>(fn: () => Promise<T>): Promise<T> };
  bounds: SessionBounds;
  /** Notes the use of a session. */
  onUse?(principal: Principal): void;
}

const ended = () => unauthenticated("the session has ended; log in again", ErrorReason.SESSION_ENDED);

/** A verifier of sessions. A token with a wrong checksum costs no statement. */
export function sessionVerifier({ sql, gate, bounds, onUse = () => {} }: Options): SessionVerifier {
  const noted = new LRUCache<string, true>({ max: 10_000, ttl: 60_000 });
  const cache = freshCache({
    nameOf: ({ tenantId, id }: Omit<Token, "digest">) => `${tenantId} ${id}`,
    async read(token) {
      const row = await gate.run(() => readSession(sql, token, bounds));
      if (row === undefined) return undefined;
      const { digest, endsMs: _, ...client } = row;
      return { digest, principal: { ...client, tenantId: token.tenantId, sessionId: token.id } };
    },
    refused: ended,
    what: "sessions",
  });

  return {
    verify(text, address) {
      const [named = ""] = text.split("\n", 1);
      const token = parseToken("bs", named);
      if (token === undefined) throw ended();
      return cache.find(token, text, address);
    },
    used(principal) {
      const { sessionId: id, tenantId } = principal;
      if (id === undefined) return;
      onUse(principal);
      if (noted.has(id)) return;
      noted.set(id, true);
      gate.run(() => noteSessionUse(sql, { tenantId, id })).catch(() => noted.delete(id));
    },
    forget(tenantId, id) {
      cache.forget({ tenantId, id });
    },
  };
}
