/** How many attempts of a delivery are kept, the newest. More than its tries: only those that are asked for by hand exceed it. */
const attemptsKept = 20;

/** One try of a delivery, as it is kept. */
export interface Attempt {
  timeMs: number;
  /** `sent`, or why it is not known to be. */
  reason: string;
  /** What the receiver said. */
  answer: string;
  /** Of the first one that is kept: how many were before it. Absent: none. */
  earlier?: number;
}

/** Why a try is known as no more than begun: the process that made it ended before it recorded what came of it. */
const lostReason = "lost";

/** Returns the record of such a try, as it is found later. */
export const lostAttempt = (foundMs: number): Attempt => ({
  timeMs: foundMs,
  reason: lostReason,
  answer: "the server stopped before it learned the answer; the receiver may have taken it",
});

/** Tells whether a try among these may have reached the receiver without an answer. */
export const mayHaveArrived = (attempts: readonly Attempt[]) => attempts.some(({ reason }) => reason === lostReason);

/** How many there were, with those that are not kept any more. */
export const countOf = (attempts: readonly Attempt[]) => attempts.length + (attempts[0]?.earlier ?? 0);

/** The newest ones, which are kept. */
export function newest(attempts: readonly Attempt[]): Attempt[] {
  const [first, ...rest] = attempts.slice(-attemptsKept);
  if (first === undefined || attempts.length <= attemptsKept) return [...attempts];
  return [{ ...first, earlier: countOf(attempts) - attemptsKept }, ...rest];
}
