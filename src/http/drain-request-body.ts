import type { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import type { Request } from "../wire/body-reader.ts";
import type { Response } from "../wire/send-response.ts";

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
 * The answer of a call that is `atOnce` does not wait.
 */
export function answerAfterBody(
  request: Request,
  response: Response,
  limits: RestLimits,
  { comes, atOnce }: { comes(): boolean; atOnce(): boolean },
): void {
  const target = response as ServerResponse; // HTTP/2's compatibility response has the same methods
  const own = { writeHead: target.writeHead, write: target.write, end: target.end };
  const held: (() => void)[] = [];
  let ended = false;
  let grace: NodeJS.Timeout | undefined;
  const late = () => !request.complete && !request.destroyed && comes();
  // It will not be read to its end.
  const endless = !("stream" in request) && Number(request.headers["content-length"] ?? 0) > limits.bytesMax;

  function go() {
    clearTimeout(grace);
    request.off("end", go).off("close", go);
    Object.assign(target, own);
    if ("stream" in response ? response.stream?.destroyed : response.destroyed) return;
    for (const part of held.splice(0)) part();
    if (ended) return;
    target.end = (...given: unknown[]) => {
      if (late()) discardRest(request, limits, go);
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
      if (atOnce()) {
        go();
        return false;
      }
      if (endless) target.shouldKeepAlive = false;
      grace = setTimeout(go, limits.graceMs);
      request.once("end", go).once("close", go);
    }
    held.push(() => call(method, given));
    return true;
  }

  // Not set one by one: V8 would make such functions in its old space, with the request that they know (src/db/driver/statement.ts).
  Object.assign(target, {
    writeHead(...given: unknown[]) {
      // Connect's plugin writes a head again whose sending it cannot see, since it is held.
      if (held.length > 0) return target;
      if (!hold("writeHead", given)) return call("writeHead", given);
      target.statusCode = given[0] as number;
      return target;
    },
    write: (...given: unknown[]) => hold("write", given) || call("write", given),
    end(...given: unknown[]) {
      if (!hold("end", given)) return call("end", given);
      if (!ended) discardRest(request, limits, go);
      ended = true;
      return target;
    },
  });
}

/**
 * Beyond the bounds no more is read: what is held of the answer goes. Then an HTTP/2 stream is cut after its answer; a
 * connection of HTTP/1.1 is cut when the time is over.
 */
function discardRest(request: Request, { bytesMax, waitMs, graceMs }: RestLimits, sendHeld: () => void) {
  const over1 = "stream" in request ? undefined : request.socket;
  if (over1 !== undefined) closeSlowly(over1);
  let left = bytesMax;
  const cut = () => {
    done();
    // NO_ERROR informs the client that its answer stands and that the rest is not wanted (RFC 9113, 8.1).
    if ("stream" in request) request.stream.close(constants.NGHTTP2_NO_ERROR);
    else request.socket.destroy();
  };
  const count = (chunk: Uint8Array) => {
    left -= chunk.byteLength;
    if (left >= 0) return;
    request.off("data", count).pause();
    sendHeld();
    // Not at once: its trailers are sent after its last byte.
    if (over1 === undefined) setTimeout(cut, graceMs).unref();
  };
  const timer = setTimeout(cut, waitMs);
  timer.unref();
  function done() {
    clearTimeout(timer);
    request.off("data", count);
    if (over1 !== undefined) closeAgain(over1);
  }
  request.on("data", count).once("end", done).once("close", done).on("error", done);
  request.resume();
}

/**
 * After the last answer of a connection Node closes it whole. What is still unread then makes a reset of it, which takes the
 * answer from the client; so only this side is closed, until the request has ended.
 */
function closeSlowly(socket: Socket) {
  socket.destroySoon = () => {
    if (!socket.writableEnded) socket.end();
  };
}

function closeAgain(socket: Socket) {
  Reflect.deleteProperty(socket, "destroySoon");
  if (socket.writableEnded) socket.destroySoon();
}

/** Whether the head of a request announces a body. */
export function hasBody(request: Request): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}
