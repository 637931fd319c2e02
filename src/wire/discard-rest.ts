import { constants } from "node:http2";
import type { Request } from "./body-reader.ts";

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
