import type { Config } from "../config/settings.ts";
import type { Db } from "../db/connect.ts";
import { lastUse } from "./key-last-used.ts";
import { type KeyVerifier, keyVerifier } from "./key-verifier.ts";
import type { Principal } from "./principal.ts";
import { sessionOf } from "./session-cookie.ts";
import { type SessionVerifier, sessionVerifier } from "./session-verifier.ts";

/** How the callers of calls are found. */
export interface Callers {
  /** The principal of a key, or of a session, as `credentialOf` gives it. @throws code 16; 14 while the database is away */
  verify(credential: string | null, address?: string): Principal | Promise<Principal>;
  /** Notes a call that was admitted by a session. */
  onSessionUse?(principal: Principal): void;
  /** Where people reach this service, when that is not the host that they ask. */
  readonly publicOrigin?: string | undefined;
}

interface Options {
  sql: Db;
  gate: { run<T>(fn: () => Promise<T>): Promise<T> };
}

/** Keys and sessions of one server. */
export function startCallers(
  system: Options,
  config: Config,
): Callers & {
  keys: KeyVerifier;
  sessions: SessionVerifier;
  stop(): Promise<void>;
} {
  const uses = lastUse(system);
  const keys = keyVerifier({ ...system, onUse: uses.note });
  const sessions = sessionVerifier({ ...system, bounds: config, onUse: uses.note });
  return {
    keys,
    sessions,
    verify(credential, address) {
      const session = sessionOf(credential);
      return session === undefined ? keys.verify(credential, address) : sessions.verify(session, address);
    },
    onSessionUse: sessions.used,
    publicOrigin: config.publicUrl === undefined ? undefined : new URL(config.publicUrl).origin,
    stop: uses.stop,
  };
}
