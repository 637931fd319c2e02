import { unavailable } from "../errors.ts";
import { limiter, networkOf } from "../limiter.ts";
import { untilAborted } from "../wire/call.ts";
import { callRecord, type RequestRecord } from "./context.ts";
import type { Passage } from "./passage.ts";

/** Bounds of streams without a key. */
export interface UnauthenticatedStreams {
  /** Streams at once, of all callers; one address leaves room for others. */
  streamsMax: number;
  /** How long a stream may last, ms. */
  streamMsMax: number;
}

/** What calls of RPCs pass that need no key: what they answer is the same for all callers, and asks no database. */
export function unauthenticatedPassage(
  { streamsMax, streamMsMax }: UnauthenticatedStreams,
  fail: Passage["fail"],
): Passage {
  const places = limiter({ max: streamsMax, what: "streams without a key are open" });
  const networks = new WeakMap<RequestRecord, string>();
  return {
    fail,
    admit(_method, _header, record, request) {
      networks.set(record, networkOf(request?.socket?.remoteAddress ?? ""));
    },
    run: (work) => work(),
    succeeded() {},
    async failed() {},
    begin(_method, context) {
      const place = places.take({ address: networks.get(callRecord(context)) ?? "" });
      const ending = new AbortController();
      const signal = AbortSignal.any([context.signal, ending.signal]);
      const over = () => ending.abort(unavailable(`a stream without a key lasts ${streamMsMax} ms; begin another one`));
      const life = setTimeout(over, streamMsMax).unref();
      return {
        context: { ...context, signal },
        until: (outcome) => untilAborted(outcome, { signal }),
        close() {
          clearTimeout(life);
          place.release();
          ending.abort();
        },
      };
    },
  };
}
