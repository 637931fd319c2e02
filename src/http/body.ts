import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest } from "node:http2";
import { exhausted } from "../errors.ts";
import { canceled, deadlineExceeded } from "../rpc/errors.ts";
import type { Response } from "./answer.ts";

/** A request as Node gives it, over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;

/** The bytes of a request, read as they are asked for. */
export interface Body extends AsyncIterable<Uint8Array> {
  /** Stops reading; what is left stays in the request. */
  release(): void;
}

/** A body with bounds. It fails with code 8 beyond `bytesMax`, code 4 after `idleMs` without a byte, code 1 when the client has gone. */
export function boundedBody(request: Request, { bytesMax, idleMs }: { bytesMax: number; idleMs: number }): Body {
  const queue: Uint8Array[] = [];
  let left = bytesMax;
  let ended = false;
  let failure: Error | undefined;
  let waiting: { resolve(result: IteratorResult<Uint8Array>): void; reject(error: Error): void } | undefined;
  let idle: NodeJS.Timeout | undefined;

  function settle() {
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
    idle?.refresh();
    left -= chunk.byteLength;
    if (left < 0) return fail(exhausted(`the request is larger than ${bytesMax} bytes`));
    queue.push(chunk);
    if (waiting === undefined) request.pause();
    settle();
  }

  function end() {
    if (failure === undefined) ended = true;
    release();
    settle();
  }

  const close = () => fail(canceled());
  const silent = () => {
    if (waiting !== undefined) return fail(deadlineExceeded(`nothing of the request came for ${idleMs} ms`));
    idle?.refresh(); // it was this side that did not read
  };

  function begin() {
    if (request.readableEnded) return end();
    if (request.destroyed) return close();
    idle = setTimeout(silent, idleMs);
    idle.unref();
    request.on("data", take).on("end", end).on("close", close).on("error", close);
  }

  function release() {
    clearTimeout(idle);
    request.off("data", take).off("end", end).off("close", close);
  }

  let begun = false;
  return {
    release,
    [Symbol.asyncIterator]() {
      return {
        next() {
          if (!begun) {
            begun = true;
            begin();
          }
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

/** Bounds of what is taken in and forgotten of a request after its answer is known. */
export interface RestLimits {
  /** How long the answer waits for the end of the request, ms. */
  graceMs: number;
  /** How long the rest is taken in altogether, ms. */
  waitMs: number;
  bytesMax: number;
}

/**
 * Lets a request that is not read whole end before its answer begins, or for `graceMs`; then takes in and forgets what
 * still comes. So a client can read the answer and keep its connection: Node's HTTP/2 client counts unsent bodies of
 * ended calls for ever and closes its session at 10 MB, an HTTP/1.1 connection with unread data would be reset, and curl,
 * when it sees the head of an error, ends its request short of the announced length, for which HTTP/2 resets the stream.
 */
export function answerAfterBody(request: Request, response: Response, limits: RestLimits, comes: () => boolean): void {
  const target = response as ServerResponse; // HTTP/2's compatibility response has the same methods
  const own = { writeHead: target.writeHead, write: target.write, end: target.end };
  const held: (() => void)[] = [];
  let ended = false;
  let grace: NodeJS.Timeout | undefined;
  const late = () => !request.complete && !request.destroyed && comes();

  function go() {
    clearTimeout(grace);
    request.off("end", go).off("close", go);
    Object.assign(target, own);
    if ("stream" in response ? response.stream?.destroyed : response.destroyed) return;
    for (const part of held) part();
    if (ended) return;
    target.end = (...given: unknown[]) => {
      if (late()) discardRest(request, limits);
      return call("end", given);
    };
  }

  function call(method: keyof typeof own, given: unknown[]): never {
    return (own[method] as (...given: unknown[]) => unknown).apply(target, given) as never;
  }

  /** Whether this part of the answer waits. */
  function hold(method: keyof typeof own, given: unknown[]): boolean {
    if (ended) return true;
    if (grace === undefined) {
      if (!late()) {
        Object.assign(target, own);
        return false;
      }
      grace = setTimeout(go, limits.graceMs);
      request.once("end", go).once("close", go);
    }
    held.push(() => call(method, given));
    return true;
  }

  target.writeHead = (...given: unknown[]) => {
    if (!hold("writeHead", given)) return call("writeHead", given);
    target.statusCode = given[0] as number;
    return target;
  };
  target.write = (...given: unknown[]) => hold("write", given) || call("write", given);
  target.end = (...given: unknown[]) => {
    if (!hold("end", given)) return call("end", given);
    if (!ended) discardRest(request, limits);
    ended = true;
    return target;
  };
}

/** Beyond the bounds the stream (HTTP/2) or the connection (HTTP/1.1) is cut. */
function discardRest(request: Request, { bytesMax, waitMs }: RestLimits) {
  let left = bytesMax;
  const cut = () => {
    done();
    // NO_ERROR tells the client that its answer stands and that the rest is not wanted (RFC 9113, 8.1).
    if ("stream" in request) request.stream.close(constants.NGHTTP2_NO_ERROR);
    else request.socket.destroy();
  };
  const count = (chunk: Uint8Array) => {
    left -= chunk.byteLength;
    if (left < 0) cut();
  };
  const timer = setTimeout(cut, waitMs);
  timer.unref();
  function done() {
    clearTimeout(timer);
    request.off("data", count);
  }
  request.on("data", count).once("end", done).once("close", done).on("error", done);
  request.resume();
}

/** Whether the head of a request announces a body. */
export function hasBody(request: Request): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}
