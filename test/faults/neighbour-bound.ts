import { stretch } from "../support/stretch.ts";

/** The server, its database and the test share two processors: by themselves they stretch work up to threefold. */
const ownStretch = 3;

/**
 * How long a neighbour may wait, ms: a second, or as the contract says. Where other programs have the machine it is longer by as
 * much as they stretch the work of this thread, beyond three times as long.
 */
export function neighbourBound(contractMs = 1000): () => number {
  const stretched = stretch();
  return () => contractMs * Math.max(1, stretched() / ownStretch);
}
