import { type AttemptOutcome, sentReason } from "../kinds/attempt-outcome.ts";
import { nextTryMs } from "../kinds/retry.ts";
import { hasReached, lostAttempt } from "../queue/attempts.ts";
import type { ClaimedDelivery } from "../queue/delivery-queue.ts";
import type { Result } from "../queue/result.ts";
import { cutText } from "../templates/template.ts";
import type { Ended, Ready } from "./prepare.ts";

const charsMax = 500;
const recipientCharsMax = 200;
/** As PostgreSQL stores it. */
const stored = (text: string) => text.replaceAll("\0", "").toWellFormed();
/** The receiver may have taken it, although there was no answer. */
const unclear = new Set<string>(["timeout"]);
/** Whether a receiver may have taken this try, or one before it whose end is not known. */
const isUnclear = (reason: string, { lost }: ClaimedDelivery) => unclear.has(reason) || lost;

/** They say nothing of the receiver. */
const ownFault = new Set<string>(["internal", "secrets", "not_configured", "chained"]);

/** What was done without a try. */
export const endedResult = ({ row, status, error, dueMs, silenceId, awaited, state, over }: Ended): Result => ({
  row,
  status,
  error,
  ...(over && { over }),
  ...(dueMs !== undefined && { dueMs }),
  ...(silenceId !== undefined && { silenceId }),
  ...(awaited && { awaited }),
  ...(state && { thread: { state, sent: true } }),
});

/** A delivery that goes back as it was, to be claimed again at once. */
export const backResult = (row: ClaimedDelivery): Result => ({
  row,
  status: "PENDING",
  error: row.error,
  dueMs: row.dueMs,
});

/** What was ready and was not tried. */
export const backResults = ({ row, others, summary }: Ready): Result[] => [
  { ...backResult(row), ...(summary && !summary.sent && { unsent: summary.id }) },
  ...others.map(backResult),
];

/** Returns the delivery of an attempt that was cut off to the queue; records it as `lost` where the receiver may have taken it. */
export const cutOffResults = (ready: Ready, outcome: AttemptOutcome, nowMs: number): Result[] =>
  triedResults(ready, outcome, nowMs, 0).map(({ row, thread, attempt }) => {
    const reached = attempt !== undefined && hasReached(attempt) ? [attempt] : [];
    const lost = outcome.result === "failed" && isUnclear(outcome.reason, row) ? [lostAttempt(nowMs)] : [];
    return { ...backResult({ ...row, attempts: [...row.attempts, ...reached, ...lost] }), ...(thread && { thread }) };
  });

/** What a try came to: those that it summed up share its fate. `random` is from 0 to 1. */
export function triedResults(ready: Ready, outcome: AttemptOutcome, nowMs: number, random: number): Result[] {
  const { others } = ready;
  const first = triedResult(ready, outcome, nowMs, random);
  const rest = others.map((other): Result => {
    if (first.status === "SENT") return { row: other, status: "SUMMARISED", error: "" };
    return { row: other, status: first.status, error: first.error, ...(first.dueMs && { dueMs: first.dueMs }) };
  });
  return [first, ...rest];
}

function triedResult(
  { row, summary, match, ends, over }: Ready,
  outcome: AttemptOutcome,
  nowMs: number,
  random: number,
): Result {
  const answer = stored(cutText(outcome.answer, charsMax));
  const recipients = outcome.recipients?.map((each) => ({
    ...each,
    answer: stored(cutText(each.answer, recipientCharsMax)),
  }));
  const said = { answer, ...(recipients && { recipients }) };
  const state = Object.fromEntries(Object.entries(outcome.state).map(([name, text]) => [name, stored(text)]));
  const ofSummary = summary && { summary: summary.id };
  const thread = (sent: boolean) => ({ thread: { state: { ...state, match }, sent, ...ofSummary } });
  if (outcome.result === "sent") {
    const attempt = { timeMs: nowMs, reason: sentReason, ...said };
    const end = ends && { thread: { state: {}, sent: false } };
    return { row, status: "SENT", error: "", attempt, over, ...thread(true), ...end, sign: "alive" };
  }
  const { reason, course, retryAfterMs, beyond } = outcome;
  if (beyond !== undefined) return { row, status: "SUMMARISED", error: answer, beyond, over };
  const slow = course === "slowly";
  const tries = { all: row.tries + 1, slow: row.slowTries + (slow ? 1 : 0) };
  const waitMs = nextTryMs(course, tries, retryAfterMs, random);
  const error = cutText(answer === "" ? reason : `${reason}: ${answer}`, charsMax);
  const reached = hasReached(outcome);
  const maybe = isUnclear(reason, row) || reached;
  const temporary = !reached && (course === "retry" || course === "minute");
  return {
    row,
    status: waitMs === undefined ? "FAILED" : "PENDING",
    error,
    attempt: { timeMs: nowMs, reason, ...said },
    slow,
    ...(waitMs !== undefined && { dueMs: nowMs + waitMs }),
    ...(waitMs === undefined && { over }),
    ...(maybe || Object.keys(outcome.state).length > 0 ? thread(maybe) : {}),
    ...(summary && !summary.sent && !maybe && { unsent: summary.id }),
    ...(ownFault.has(reason) ? {} : { sign: temporary ? "temporary" : "alive" }),
    ...(course === "disable" && { disable: error }),
  };
}
