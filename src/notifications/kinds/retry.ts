import type { DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";

/** The kinds of destinations, as their members of `DestinationType` are called. */
export type KindName = NonNullable<DestinationType["type"]["case"]>;

/** Why a try did not succeed. */
export type FailureReason =
  | "network" // no connection, or it broke
  | "timeout" // no whole answer in time
  | "unresolved" // the name has no address
  | "busy" // 408, 425, 5xx
  | "rate_limited" // 429, or its form in a body
  | "unreadable" // success, but not an answer of this product
  | "rejected" // 400, 413, 422, other 4xx, an error in the body
  | "unauthorized" // 401, 403, or its form in a body
  | "missing" // 404
  | "gone" // 410
  | "redirected" // 3xx
  | "refused_address" // not public
  | "bad_address" // no http or https address, or none that an e-mail can go to
  | "bad_request" // cannot be written as HTTP or as an e-mail
  | "not_configured" // the operator has set no mail relay
  | "chained" // rules that cause each other
  | "secrets" // the destination's secrets cannot be read
  | "internal"; // an error of this service

/** What follows: the usual steps; few, long ones; the usual ones, a minute at least; none; none, and the destination ends. */
export type Course = "retry" | "slowly" | "minute" | "fail" | "disable";

const usual: Readonly<Record<FailureReason, Course>> = {
  network: "retry",
  timeout: "retry",
  unresolved: "retry",
  busy: "retry",
  rate_limited: "retry",
  unreadable: "retry",
  rejected: "fail",
  unauthorized: "fail",
  missing: "fail",
  gone: "fail",
  redirected: "fail",
  refused_address: "fail",
  bad_address: "fail",
  bad_request: "fail",
  not_configured: "fail",
  chained: "fail",
  secrets: "retry",
  internal: "retry",
};

/** Where a kind differs, by its product's contract. */
const own: Readonly<Partial<Record<KindName, Partial<Record<FailureReason, Course>>>>> = {
  // Keys get rotated, and receivers deployed: their mistakes of minutes cost no notification.
  webhook: { unauthorized: "slowly", missing: "slowly", gone: "disable" },
  officeChat: { rate_limited: "minute", gone: "disable" },
  incidentPaging: { rate_limited: "minute" },
};

/** What follows a try of this kind that did not succeed. */
export function courseOf(kind: KindName, reason: FailureReason): Course {
  return own[kind]?.[reason] ?? usual[reason];
}

/** What a status other than 2xx means. */
export function reasonOf(status: number): FailureReason {
  if (status >= 500 || status === 408 || status === 425) return "busy";
  if (status === 429) return "rate_limited";
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 404) return "missing";
  if (status === 410) return "gone";
  return status >= 300 && status < 400 ? "redirected" : "rejected";
}

/** The wait that a `Retry-After` asks for (seconds, or an HTTP date), ms, 0 or more; undefined when it is neither. */
export function retryAfterMs(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? "";
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Za-z]{3,9},? \d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

const second = 1000;
const minute = 60 * second;
const stepsMs = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  60 * minute,
  180 * minute,
  360 * minute,
];
const slowStepsMs = [2 * minute, 10 * minute, 30 * minute];

/** The tries of a delivery so far, the last one included; the slow ones are those whose course was `slowly`. */
export interface Tries {
  readonly all: number;
  readonly slow: number;
}

/**
 * How long to wait for the next try, ms; undefined: it has failed. A step is up to a fifth shorter or longer, so that what
 * failed together does not come back together. A receiver's own wait counts from the step up to twice that, or a minute.
 * `random` is from 0 to 1.
 */
export function nextTryMs(
  course: Course,
  tries: Tries,
  askedMs: number | undefined,
  random: number,
): number | undefined {
  if (course === "fail" || course === "disable") return undefined;
  const step = course === "slowly" ? slowStepsMs[tries.slow - 1] : stepsMs[tries.all - 1];
  if (step === undefined) return undefined;
  const asked = Math.min(askedMs ?? 0, Math.max(2 * step, minute));
  const floor = Math.max(asked, course === "minute" ? minute : 0);
  if (floor > step) return Math.round(floor * (1 + 0.2 * random)); // never earlier than asked
  return Math.max(floor, Math.round(step * (0.8 + 0.4 * random)));
}
