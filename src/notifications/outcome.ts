import type { Outcome, State } from "./kinds/kind.ts";
import { type Answer, OutboundError } from "./outbound.ts";
import { courseOf, type KindName, type Reason, reasonOf, retryAfterMs } from "./retry.ts";

/** The receiver has taken it. */
export function sent(answer: string, state: State): Outcome {
  return { result: "sent", answer, state };
}

/** It has not; what follows says the table of its kind. */
export function notSent(kind: KindName, reason: Reason, answer: string, state: State, retryAfterMs?: number): Outcome {
  return { result: "failed", reason, course: courseOf(kind, reason), answer, state, retryAfterMs };
}

/** A try in which no answer at all is an outcome as well. */
export async function tried(kind: KindName, state: State, attempt: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return notSent(kind, error.reason, error.message, state);
  }
}

/** What a receiver said, for people. */
export const told = ({ status, body }: Answer) => (body.trim() === "" ? `HTTP ${status}` : `HTTP ${status}: ${body}`);

export const isSuccess = ({ status }: Answer) => status >= 200 && status < 300;

/** The outcome of an answer that is no success. */
export function refusal(kind: KindName, answer: Answer, state: State, nowMs: number): Outcome {
  const wait = retryAfterMs(answer.headers["retry-after"], nowMs);
  return notSent(kind, reasonOf(answer.status), told(answer), state, wait);
}

/** The JSON object that a body is; undefined when it is none. */
export function jsonObject(body: string): Record<string, unknown> | undefined {
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
