import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { sweep } from "./sweep.ts";

/** The events of a stream. */
export interface StreamEvents {
  on(event: string, listener: (piece: Buffer) => void): this;
  once(event: string, listener: (piece: Buffer) => void): this;
  off(event: string, listener: (piece: Buffer) => void): this;
}

/** What is read of a request over HTTP/2. */
export interface Http2Request extends StreamEvents, Http2Head {
  pause(): this;
  resume(): this;
}

type Http2Head = Pick<
  Http2ServerRequest,
  | "aborted"
  | "complete"
  | "destroyed"
  | "headers"
  | "httpVersion"
  | "httpVersionMajor"
  | "method"
  | "rawHeaders"
  | "readableEnded"
  | "socket"
  | "stream"
  | "url"
>;

/** A request, over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2Request;

/** The bytes of a request, read as they are asked for. */
export interface BodyReader extends AsyncIterable<Uint8Array> {
  /** All of them; they have a least rate. `look` sees each piece as it comes; what it throws ends the reading. */
  whole(look?: (piece: Uint8Array) => void): Promise<Buffer>;
  /** Stops reading; what is left stays in the request. */
  release(): void;
}

/** Bounds of a body while it comes. */
export interface BodyLimits {
  bytesMax: number;
  /** Longest time without a byte while one is waited for, ms. */
  idleMs: number;
  /** What it fails with beyond `bytesMax`. */
  tooLarge(): ConnectError;
  /** Notified of bytes that come in; what it throws ends the reading. */
  received?(bytes: number): void;
}

/** What the client did when a body broke off. One for all: a connection that is cut takes all of its calls with it. */
export const clientLeft = new ConnectError("the client went away", Code.Canceled);

/** What a body fails with that does not come. */
export const silence = (idleMs: number) =>
  new ConnectError(`nothing of the request came for ${idleMs} ms`, Code.DeadlineExceeded);

/**
 * Whether a body that cannot be read was one that its client gave up. Over HTTP/2 Node's client ends a stream before it
 * resets it, so that the reset comes a moment after the end of half a body.
 */
export async function brokenOff(request: Request): Promise<boolean> {
  const whole = request.httpVersionMajor === 1 || request.headers["content-length"] !== undefined;
  if (!whole && !request.destroyed) await sleep(resetMs);
  return request.aborted;
}

const resetMs = 10;
const rateMs = 10_000;
const rateBytesMin = 4096;

const tooSlow = () =>
  new ConnectError(
    `the request comes too slowly: less than ${rateBytesMin} bytes in ${rateMs} ms`,
    Code.DeadlineExceeded,
  );

/** Bodies that are being read. */
const reading = sweep<(nowMs: number) => void>((look, nowMs) => look(nowMs));

/** A body with bounds. It fails with code 4 after a silence, code 1 when the client has left, and as `limits` says. */
export function bodyReader(request: Request, limits: BodyLimits): BodyReader {
  const { bytesMax, idleMs } = limits;
  const queue: Uint8Array[] = [];
  let left = bytesMax;
  let ended = false;
  let failure: Error | undefined;
  let waiting: { resolve(result: IteratorResult<Uint8Array>): void; reject(error: Error): void } | undefined;
  let gathering:
    | { resolve(bytes: Buffer): void; reject(error: Error): void; look?: (piece: Uint8Array) => void }
    | undefined;
  let heardMs = 0;
  let paceMs = 0;
  let leftBefore = bytesMax;

  function settle() {
    if (gathering !== undefined && failure !== undefined) gathering.reject(failure);
    else if (gathering !== undefined && ended) gathering.resolve(joined(queue));
    if (waiting === undefined) return;
    const { resolve, reject } = waiting;
    const chunk = queue.shift();
    if (chunk !== undefined) resolve({ done: false, value: chunk });
    else if (failure !== undefined) reject(failure);
    else if (ended) resolve({ done: true, value: undefined });
    else return;
    waiting = undefined;
  }

  function fail(error: Error) {
    if (ended || failure !== undefined) return;
    failure = error;
    release();
    settle();
  }

  function take(chunk: Uint8Array) {
    heardMs = performance.now();
    left -= chunk.byteLength;
    if (left < 0) return fail(limits.tooLarge());
    try {
      limits.received?.(chunk.byteLength);
      gathering?.look?.(chunk);
    } catch (error) {
      return fail(error as Error);
    }
    keep(queue, chunk);
    if (gathering !== undefined) return;
    if (waiting === undefined) request.pause();
    settle();
  }

  function end() {
    // A stream that is reset ends, too.
    if (request.aborted) return close();
    if (failure === undefined) ended = true;
    release();
    settle();
  }

  const close = () => fail(clientLeft);
  /** Ends a body that does not come, or hardly; what was not asked for could not come. */
  function look(nowMs: number) {
    if (waiting === undefined && gathering === undefined) return;
    if (nowMs - heardMs >= idleMs) return fail(silence(idleMs));
    if (gathering === undefined || nowMs - paceMs < rateMs) return;
    if (left > leftBefore - rateBytesMin) return fail(tooSlow());
    leftBefore = left;
    paceMs = nowMs;
  }

  function begin() {
    if (request.readableEnded) return end();
    if (request.destroyed) return close();
    paceMs = performance.now();
    reading.add(look);
    request.on("data", take).on("end", end).on("close", close).on("error", close);
  }

  function release() {
    reading.delete(look);
    request.off("data", take).off("end", end).off("close", close);
  }

  let begun = false;
  function start() {
    heardMs = performance.now();
    if (begun) return;
    begun = true;
    begin();
  }

  return {
    release,
    whole(look) {
      return new Promise<Buffer>((resolve, reject) => {
        gathering = { resolve, reject, ...(look && { look }) };
        start();
        settle();
        if (!ended && failure === undefined) request.resume();
      });
    },
    [Symbol.asyncIterator]() {
      return {
        next() {
          start();
          return new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
            waiting = { resolve, reject };
            settle();
            if (waiting !== undefined) request.resume();
          });
        },
        async return() {
          release();
          return { done: true as const, value: undefined };
        },
      };
    },
  };
}

// Larger ones come as they are: a frame of HTTP/2 has 16 KiB, a read of a socket 64 KiB.
const smallBytes = 4096;

/**
 * Adds a piece to those that wait to be joined. Small ones are joined at once: each Buffer takes some hundred bytes beside its
 * own, and a client may send byte by byte. A piece goes with the one before unless that is longer, so each byte is copied
 * a few times at most.
 */
export function keep(held: Uint8Array[], piece: Uint8Array): void {
  let last = piece;
  for (let before = held.at(-1); before !== undefined; before = held.at(-1)) {
    if (before.byteLength > last.byteLength || before.byteLength + last.byteLength > smallBytes) break;
    held.pop();
    last = Buffer.concat([before, last]);
  }
  held.push(last);
}

function joined(pieces: readonly Uint8Array[]): Buffer {
  const [first = Buffer.alloc(0)] = pieces;
  return pieces.length > 1 ? Buffer.concat(pieces) : Buffer.from(first.buffer, first.byteOffset, first.byteLength);
}

/** Clearly more than a message may have, so that the client of one that is a little too large reads the reason. */
const restBytesMax = 12 * 1024 * 1024;
const restMs = 1000;
/** How long a refusal over HTTP/2 waits for the end of its request. */
const graceMs = 150;

const discarded = new WeakSet<Request>();

/**
 * Takes in and forgets what still comes of a request that is being answered, so that its client reads the answer: an HTTP/1.1
 * connection that is closed with unread data is reset. Beyond the bounds no more is read, and after a second the rest is cut.
 */
export function discardRest(request: Request): void {
  if (request.complete || request.destroyed || discarded.has(request)) return;
  discarded.add(request);
  const over1 = "stream" in request ? undefined : request.socket;
  // The last answer of a connection closes this side alone until the request has ended.
  if (over1 !== undefined) over1.destroySoon = () => void over1.end();
  let left = restBytesMax;
  const count = (chunk: Uint8Array) => {
    left -= chunk.byteLength;
    if (left < 0) request.pause();
  };
  const timer = setTimeout(() => {
    // NO_ERROR informs the client that its answer stands and that the rest is not wanted (RFC 9113, 8.1).
    if ("stream" in request) request.stream.close(constants.NGHTTP2_NO_ERROR);
    else request.socket.destroy();
  }, restMs).unref();
  function done() {
    clearTimeout(timer);
    request.off("data", count).off("end", done).off("close", done);
    if (over1 === undefined) return;
    Reflect.deleteProperty(over1, "destroySoon");
    if (over1.writableEnded) over1.destroySoon();
  }
  request.on("data", count).on("end", done).on("close", done).on("error", done).resume();
}

/**
 * Discards the rest of a request before its refusal; over HTTP/2 resolves once it has ended, or after a moment: Node's client counts
 * unsent bodies of ended calls for ever, and closes its session at 10 MB.
 */
export async function restDiscarded(request: Request): Promise<void> {
  discardRest(request);
  if (!("stream" in request) || request.complete || request.destroyed) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, graceMs);
    const ended = () => {
      clearTimeout(timer);
      resolve();
    };
    request.once("end", ended).once("close", ended);
  });
}
