import { type Recipient, sentReason } from "../kinds/attempt-outcome.ts";

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
  /** The addresses that it tried, where there are several; of the first one that is kept also those that were sent before it. */
  recipients?: readonly Recipient[];
}

const isSent = ({ reason }: Recipient) => reason === sentReason;

/** Tells whether some of the addresses of an attempt were sent. */
export const hasReached = ({ recipients = [] }: { readonly recipients?: readonly Recipient[] }) =>
  recipients.some(isSent);

/**
 * Returns what came of a delivery's addresses so far, the last attempt at each: what was sent at any time, and what failed since it was
 * asked for again, because a person asks for what has failed.
 */
export function recipientsSoFar(attempts: readonly Attempt[], retriedMs: number | null): Recipient[] {
  const tried = attempts.flatMap(({ timeMs, recipients = [] }) =>
    timeMs >= (retriedMs ?? 0) ? recipients : recipients.filter(isSent),
  );
  return [...new Map(tried.map((each) => [each.address, each])).values()];
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
export const attemptCount = (attempts: readonly Attempt[]) => attempts.length + (attempts[0]?.earlier ?? 0);

/** The newest ones, which are kept. */
export function newest(attempts: readonly Attempt[]): Attempt[] {
  const [first, ...rest] = attempts.slice(-attemptsKept);
  if (first === undefined || attempts.length <= attemptsKept) return [...attempts];
  const sent = attempts.slice(0, -attemptsKept).flatMap(({ recipients = [] }) => recipients.filter(isSent));
  const recipients = [...sent, ...(first.recipients ?? [])];
  const kept = { ...first, earlier: attemptCount(attempts) - attemptsKept };
  return [recipients.length === 0 ? kept : { ...kept, recipients }, ...rest];
}
