/** How many attempts of a delivery are kept, the newest. More than its tries: only those that are asked for by hand exceed it. */
const attemptsKept = 20;

/** One try of a delivery, as it is kept. */
export interface Attempt {
  timeMs: number;
  /** `sent`, or why it was not. */
  reason: string;
  /** What the receiver said. */
  answer: string;
  /** Of the first one that is kept: how many were before it. Absent: none. */
  earlier?: number;
}

/** How many there were, with those that are not kept any more. */
export const countOf = (attempts: readonly Attempt[]) => attempts.length + (attempts[0]?.earlier ?? 0);

/** The newest ones, which are kept. */
export function newest(attempts: readonly Attempt[]): Attempt[] {
  const [first, ...rest] = attempts.slice(-attemptsKept);
  if (first === undefined || attempts.length <= attemptsKept) return [...attempts];
  return [{ ...first, earlier: countOf(attempts) - attemptsKept }, ...rest];
}
