import { ServerResponse } from "node:http";
import { constants, Http2ServerResponse } from "node:http2";
import { Code } from "@connectrpc/connect";
import { every } from "../every.ts";
import { type Limiter, type LimiterShare, limiter } from "../limiter.ts";
import { holderOfRecord, type RequestRecord } from "../rpc/context.ts";
import { discardRest } from "../wire/body-reader.ts";
import type { Response } from "../wire/send-response.ts";

/** Bounds of bytes that were written of answers and that their clients have not taken. */
export interface UnreadLimits {
  /** Of all answers together, bytes; a connection alone may have a quarter of them. */
  bytesMax: number;
  /** An answer is cut of which nothing is taken for this long, ms, or less than `takenPerSecMin` in all. */
  stallMs: number;
}

/** The answers of a port that are not taken yet. */
export interface UnreadResponses {
  /** Before a call is worked on. @throws code 8 when no more bytes may wait for its tenant, its key or its connection */
  check(record: RequestRecord): void;
  /** Counts what is written of an answer from now on. */
  count(response: Response, record: RequestRecord): void;
  /** How many bytes wait. */
  readonly used: number;
  /** Ends the watch over them. */
  stop(): void;
}

const takenPerSecMin = 4096;
const sweepMsMax = 5000;
/** A stream that was cut and does not close has a connection that takes nothing. */
const closeMs = 2000;
/** What a call is expected to answer before it has. */
const answerBytes = 64 * 1024;

/** What is known of one answer. */
interface Taking {
  readonly response: Response;
  readonly record: RequestRecord;
  readonly answers: Answers;
  hold: LimiterShare | undefined;
  /** Bytes that were written in all. */
  written: number;
  /** What was written until a moment, and how many of these bytes waited then. */
  markWritten: number;
  markPending: number;
  markMs: number;
  watched: boolean;
  /** When it was cut. */
  cutMs: number | undefined;
}

/** All answers, and their bound. */
interface Answers {
  readonly all: Limiter;
  readonly open: Set<Taking>;
}

const takingKey = Symbol("taking");

/** Makes the bounds of a port's answers. */
export function unreadResponses({ bytesMax, stallMs }: UnreadLimits): UnreadResponses {
  const shares = { tenant: 8, key: 4, connection: 1 / 3 };
  const answers: Answers = {
    all: limiter({ max: bytesMax, what: "bytes of answers wait to be taken", shares }),
    open: new Set(),
  };
  const sweep = () => {
    const nowMs = performance.now();
    for (const taking of answers.open) look(taking, nowMs, stallMs);
  };
  const rounds = every(Math.min(sweepMsMax, Math.max(10, stallMs / 5)), sweep);
  return {
    check: (record) => answers.all.check(holderOfAnswer(record), Math.min(answerBytes, bytesMax / 8)),
    count(response, record) {
      const taking: Taking = {
        response,
        record,
        answers,
        hold: undefined,
        written: 0,
        markWritten: 0,
        markPending: 0,
        markMs: 0,
        watched: false,
        cutMs: undefined,
      };
      (response as Partial<Counted>)[takingKey] = taking;
    },
    get used() {
      return answers.all.used;
    },
    stop: () => void rounds.stop(),
  };
}

const holderOfAnswer = (record: RequestRecord) => ({ ...holderOfRecord(record), connection: record.connection });

/** Looks whether an answer is being taken. */
function look(taking: Taking, nowMs: number, stallMs: number) {
  const { response, hold, written, markPending } = taking;
  const pending = pendingOf(response);
  hold?.release(hold.amount() - pending);
  if (taking.cutMs !== undefined) return nowMs - taking.cutMs < closeMs ? undefined : disconnect(response);
  if (pending > 0 && !taking.watched) watch(taking, stallMs);
  if (written - pending < taking.markWritten) {
    if (nowMs - taking.markMs > stallMs + (markPending / takenPerSecMin) * 1000) cut(taking, Code.DeadlineExceeded);
    return;
  }
  taking.markWritten = written;
  taking.markPending = pending;
  taking.markMs = nowMs;
}

/** Node reports when no byte has gone for a time: how much of one write has gone it does not. */
function watch(taking: Taking, stallMs: number) {
  const { response } = taking;
  taking.watched = true;
  const stalled = () => taking.cutMs === undefined && pendingOf(response) > 0 && cut(taking, Code.DeadlineExceeded);
  if ("stream" in response) response.stream?.setTimeout(stallMs);
  response.on("timeout", stalled); // over HTTP/1.1 the listener sets the time
}

/** Counts bytes that are about to be written. Answers false when they may not be. */
function reserve(taking: Taking, bytes: number): boolean {
  const { answers, response, record } = taking;
  if (taking.cutMs !== undefined) return false;
  if (taking.written === 0) {
    answers.open.add(taking);
    taking.markMs = performance.now();
    taking.markWritten = bytes;
    taking.markPending = bytes;
    response.once("close", () => {
      answers.open.delete(taking);
      taking.hold?.release();
    });
  }
  taking.written += bytes;
  try {
    if (taking.hold === undefined) taking.hold = answers.all.take(holderOfAnswer(record), bytes);
    else {
      taking.hold.release(taking.hold.amount() - pendingOf(response));
      taking.hold.more(bytes);
    }
  } catch {
    cut(taking, Code.ResourceExhausted);
    return false;
  }
  return true;
}

/** Bytes that were written and that the connection has not taken. */
function pendingOf(response: Response): number {
  return "stream" in response ? (response.stream?.writableLength ?? 0) : response.writableLength;
}

/** Ends one answer; the log says with which code. Clients of gRPC read that of HTTP/2 as code 8. */
function cut(taking: Taking, code: Code) {
  const { response } = taking;
  taking.cutMs = performance.now();
  taking.record.code = code;
  if ("stream" in response) response.stream?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else disconnect(response);
}

function disconnect(response: Response) {
  if ("stream" in response) response.stream?.session?.destroy();
  else response.socket?.destroy();
}

/** An answer whose bytes are counted. Classes, because Node makes responses of those that it is given. */
interface Counted {
  [takingKey]: Taking | undefined;
}

const names = new WeakMap<object, string>();
let connections = 0;

/** A name for the connection of a response, another one for each. */
export function connectionOf(response: Response): string {
  const connection = "stream" in response ? response.stream?.session : response.socket;
  if (!connection) return "";
  let name = names.get(connection);
  if (name === undefined) {
    connections += 1;
    name = String(connections);
    names.set(connection, name);
  }
  return name;
}

const sizeOf = (chunk: unknown) =>
  typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk instanceof Uint8Array ? chunk.byteLength : 0;

/** Counts a piece of an answer that is about to be written; false when it may not be, and the answer is cut. */
export function mayWrite(response: object, chunk: unknown): boolean {
  const taking = (response as Partial<Counted>)[takingKey];
  const bytes = sizeOf(chunk);
  return taking === undefined || bytes === 0 || reserve(taking, bytes);
}

/** A response over HTTP/1.1. */
export class CountedResponse extends ServerResponse {
  override write(...given: unknown[]): boolean {
    return mayWrite(this, given[0]) && super.write(...(given as [string]));
  }

  override end(...given: unknown[]): this {
    if (!mayWrite(this, given[0])) return this;
    discardRest(this.req);
    return super.end(...(given as [string]));
  }
}

/** A response over HTTP/2; what it ends with passes `write`, too. */
export class CountedHttp2Response extends Http2ServerResponse {
  override write(...given: unknown[]): boolean {
    return mayWrite(this, given[0]) && super.write(...(given as [string]));
  }

  override end(...given: unknown[]): this {
    discardRest(this.req);
    return super.end(...(given as [string]));
  }
}
