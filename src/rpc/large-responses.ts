import { availableParallelism } from "node:os";
import { limiter } from "../limiter.ts";

/** One tenant alone makes half as many at once; the database has processors for few more. */
const turns = limiter({
  max: 2 * availableParallelism() + 2,
  what: "large answers are made",
  waitingMax: Infinity,
  shares: { tenant: 1 },
});

/**
 * Makes a large answer when the tenant has its turn: those that are made have all their rows in memory, and each takes a
 * processor of the database. @throws the signal's reason
 */
export const inTurn = <T>(tenantId: string, signal: AbortSignal, make: () => Promise<T>): Promise<T> =>
  turns.run({ tenant: tenantId }, make, signal);
