import type { Config } from "../config/settings.ts";
import type { Db } from "../db/connect.ts";
import type { Log } from "../log.ts";
import { lastUse } from "./key-last-used.ts";
import { sessionOf } from "./own-page.ts";
import type { Principal } from "./principal.ts";
import { type SessionVerifier, sessionVerifier } from "./session-verifier.ts";
import { type KeyVerifier, keyVerifier } from "./verify.ts";
import { type WrongKeys, wrongKeys } from "./wrong-keys.ts";

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

/** Keys and sessions of one server, and what delays those who try them out. */
export function startCallers(
  system: Options,
  config: Config,
  log: Log,
): Callers & {
  keys: KeyVerifier;
  sessions: SessionVerifier;
  guesses: WrongKeys;
  stop(): Promise<void>;
} {
  const uses = lastUse(system);
  const keys = keyVerifier({ ...system, onUse: uses.note });
  const sessions = sessionVerifier({ ...system, bounds: config, onUse: uses.note });
  const guesses = wrongKeys({
    perMinuteMax: config.wrongKeysMax,
    onSlowed: (address) => log.warn({ address }, "many wrong keys come from this address; they are answered late"),
  });
  return {
    keys,
    sessions,
    guesses,
    verify(credential, address) {
      const session = sessionOf(credential);
      return session === undefined ? keys.verify(credential) : sessions.verify(session, address);
    },
    onSessionUse: sessions.used,
    publicOrigin: config.publicUrl === undefined ? undefined : new URL(config.publicUrl).origin,
    stop: uses.stop,
  };
}
