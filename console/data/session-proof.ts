import { store, stored } from "./storage.ts";

const name = "session-proof";

/** The header of the session's second half (src/auth/session-cookie.ts). */
export const proofHeader = "service-session-proof";

/** Returns the proof of this browser's session; null where no session was made. Read at each call: another tab may have logged in. */
export const sessionProof = (): string | null => stored(name);

/** Keeps the proof of a session that was made, and forgets it with null. */
export const keepSessionProof = (proof: string | null): void => store(name, proof);
