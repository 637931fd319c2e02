/** Most attempts of a delivery that are kept, the newest. More than its tries: only retries by hand and lost attempts exceed it. */
const attemptsKept = 20;

/** One try of a delivery, as it is kept. */
export interface Attempt {
  timeMs: number;
  /** `sent`, `lost`, or why it failed. */
  reason: string;
  /** What the receiver said. */
  answer: string;
  /** Of the first one that is kept: how many were before it. Absent: none. */
  earlier?: number;
}

/** Reason of an attempt whose result was never recorded. */
const lostReason = "lost";

/** Returns an attempt with the reason `lost`, at the time when that was noticed. */
export const lostAttempt = (foundMs: number): Attempt => ({
  timeMs: foundMs,
  reason: lostReason,
  answer: "the answer was not recorded; the receiver may have taken it",
});

/** Tells whether one of these attempts was lost. */
export const hasLost = (attempts: readonly Attempt[]) => attempts.some(({ reason }) => reason === lostReason);

/** How many there were, with those that are not kept any more. */
export const countOf = (attempts: readonly Attempt[]) => attempts.length + (attempts[0]?.earlier ?? 0);

/** The newest ones, which are kept. */
export function newest(attempts: readonly Attempt[]): Attempt[] {
  const [first, ...rest] = attempts.slice(-attemptsKept);
  if (first === undefined || attempts.length <= attemptsKept) return [...attempts];
  return [{ ...first, earlier: countOf(attempts) - attemptsKept }, ...rest];
}
