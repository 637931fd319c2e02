import { OutboundError, type OutboundResponse } from "./outbound.ts";
import { type Course, courseOf, type FailureReason, type KindName, reasonOf, retryAfterMs } from "./retry.ts";

/** What came of one of several addresses. */
export interface Recipient {
  readonly address: string;
  /** `sent`, or why it failed. */
  readonly reason: string;
  /** What the receiver said. */
  readonly answer: string;
}

/** Reason of what the receiver has taken. */
export const sentReason = "sent";

/** What earlier sends of one (destination, occurrence) left, for the next one; kept by the caller, read by its kind alone. */
export type ThreadState = Readonly<Record<string, string>>;

/** What a try came to. Neither answers nor `state` hold a secret. */
export type AttemptOutcome = {
  /** What came of each address that it tried, where there are several. */
  readonly recipients?: readonly Recipient[];
} & (
  | { readonly result: "sent"; readonly answer: string; readonly state: ThreadState }
  | {
      readonly result: "failed";
      readonly reason: FailureReason;
      /** What follows: whether it is tried again, and how soon (`nextTryMs`). */
      readonly course: Course;
      readonly retryAfterMs?: number | undefined;
      /** What the receiver said, in a few words, for people. */
      readonly answer: string;
      readonly state: ThreadState;
      /** The root of which no further event is made: that is said once a rule. */
      readonly beyond?: string;
    }
);

/** The receiver has taken it. */
export function sent(answer: string, state: ThreadState): AttemptOutcome {
  return { result: "sent", answer, state };
}

/** It has not; what follows says the table of its kind. */
export function notSent(
  kind: KindName,
  reason: FailureReason,
  answer: string,
  state: ThreadState,
  retryAfterMs?: number,
): AttemptOutcome {
  return { result: "failed", reason, course: courseOf(kind, reason), answer, state, retryAfterMs };
}

/** A try in which no answer at all is an outcome as well. */
export async function tried(
  kind: KindName,
  state: ThreadState,
  attempt: () => Promise<AttemptOutcome>,
): Promise<AttemptOutcome> {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return notSent(kind, error.reason, error.message, state);
  }
}

/** What a receiver said, for people. */
export const told = ({ status, body }: OutboundResponse) =>
  body.trim() === "" ? `HTTP ${status}` : `HTTP ${status}: ${body}`;

export const isSuccess = ({ status }: OutboundResponse) => status >= 200 && status < 300;

/** The outcome of an answer that is no success. */
export function refusedOutcome(
  kind: KindName,
  answer: OutboundResponse,
  state: ThreadState,
  nowMs: number,
): AttemptOutcome {
  const wait = retryAfterMs(answer.headers["retry-after"], nowMs);
  return notSent(kind, reasonOf(answer.status), told(answer), state, wait);
}

/** The JSON object that a body is; undefined when it is none. */
export function parsedObject(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a body is a page instead of an answer: of a proxy, of a log-in, of a system that sleeps. */
export const isPage = (body: string) => /^\s*</.test(body);
