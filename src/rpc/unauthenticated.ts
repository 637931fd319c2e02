import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ContextValues, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Logger } from "pino";
import { networkOf } from "../auth/wrong-keys.ts";
import { unavailable } from "../errors.ts";
import { type Hold, limiter } from "../limiter.ts";
import { untilAborted } from "../wire/call.ts";
import {
  admittedValues,
  callRecord,
  openRecord,
  type RecordedRequest,
  type RequestRecord,
  recordOf,
} from "./context.ts";
import { briefError } from "./errors.ts";
import { failedCall } from "./failed-call.ts";
import type { Pipeline } from "./pipeline.ts";
import { requestId } from "./request-id.ts";

/** Calls of RPCs that need no key: what they answer is the same for all callers, and asks no database. */
export interface Unauthenticated {
  /** Admits calls of the services that `implement` has seen, whatever key they bring; leaves all others to `otherwise`. */
  admit(otherwise: Pipeline["admit"]): Pipeline["admit"];
  implement<S extends DescService>(service: S, implementation: ServiceImpl<S>): ServiceImpl<S>;
}

interface Options {
  log: Logger;
  /** Streams at once, of all callers; one address leaves room for others. */
  streamsMax: number;
  /** How long a stream may last, ms. */
  streamMsMax: number;
}

type Handler = (request: unknown, context: HandlerContext) => unknown;

/** What such calls pass: a bound of streams, the handler, errors. */
export function unauthenticated({ log, streamsMax, streamMsMax }: Options): Unauthenticated {
  const services = new Set<DescService>();
  const places = limiter({ max: streamsMax, what: "streams without a key are open" });
  const networks = new WeakMap<RequestRecord, string>();

  function admit(method: DescMethod, request: RecordedRequest | undefined): ContextValues {
    const record = (request && recordOf(request)) ?? openRecord({ headers: {} }, requestId(undefined));
    record.rpc = `${method.parent.typeName}/${method.name}`;
    networks.set(record, networkOf(request?.socket?.remoteAddress ?? ""));
    record.sendContinue?.();
    return admittedValues(record);
  }

  function unary(handler: Handler): Handler {
    return async (request, context) => {
      const record = callRecord(context);
      try {
        const answer = await handler(request, context);
        record.code = 0;
        return answer;
      } catch (error) {
        throw briefError(failedCall(log, error, record));
      }
    };
  }

  function answering(handler: Handler): Handler {
    return async function* answers(requests, context) {
      const record = callRecord(context);
      const ending = new AbortController();
      const signal = AbortSignal.any([context.signal, ending.signal]);
      const over = () => ending.abort(unavailable(`a stream without a key lasts ${streamMsMax} ms; begin another one`));
      const life = setTimeout(over, streamMsMax).unref();
      let messages: AsyncIterator<unknown> | undefined;
      let place: Hold | undefined;
      try {
        place = places.take({ address: networks.get(record) ?? "" });
        messages = (handler(requests, { ...context, signal }) as AsyncIterable<unknown>)[Symbol.asyncIterator]();
        for (;;) {
          const next = await untilAborted(messages.next(), { signal });
          if (next.done) break;
          yield next.value;
        }
        record.code = 0;
      } catch (error) {
        throw briefError(failedCall(log, error, record, signal));
      } finally {
        clearTimeout(life);
        place?.release();
        ending.abort();
        // Not awaited: it may wait for a message that never comes.
        messages?.return?.()?.catch(() => {});
      }
    };
  }

  return {
    admit: (otherwise) => async (method, header, request) =>
      services.has(method.parent) ? admit(method, request) : otherwise(method, header, request),
    implement(service, implementation) {
      services.add(service);
      const handlers = implementation as Record<string, Handler>;
      const wrapped = service.methods.map(({ localName, methodKind }) => {
        const handler = handlers[localName] as Handler;
        return [localName, methodKind === "unary" ? unary(handler) : answering(handler)];
      });
      return Object.fromEntries(wrapped) as ServiceImpl<typeof service>;
    },
  };
}
