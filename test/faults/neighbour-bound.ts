import { stretch } from "../support/stretch.ts";

/**
 * Begins to measure how long a neighbour may wait, ms: a second, or as the contract says, and longer by as much as other work on the machine
 * stretches that of this thread meanwhile.
 */
export function neighbourBound(contractMs = 1000): () => number {
  const stretched = stretch();
  return () => contractMs * Math.max(1, stretched());
}
