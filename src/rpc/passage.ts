import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { http } from "#gen/google/api/annotations_pb.ts";
import { withHolder } from "../db/request-scope.ts";
import { reasoned } from "../error-reasons.ts";
import { unavailable } from "../errors.ts";
import { turnAfter } from "../event-loop.ts";
import { limiter, networkOf } from "../limiter.ts";
import { optionOf } from "../proto-option.ts";
import { Call, untilAborted } from "../wire/call.ts";
import { isAudited } from "./audit.ts";
import { callRecord, holderOf, type RecordedRequest, type RequestRecord } from "./context.ts";
import { briefError, pathsWithin } from "./errors.ts";
import type { OpenStream } from "./open-streams.ts";
import { validateRequest } from "./validate.ts";

/** What the calls of an RPC pass beside its rules: with a key, or without one. */
export interface Passage {
  /** Before a byte of the body is read. @throws what the call is refused with */
  admit(
    method: DescMethod,
    header: Headers,
    record: RequestRecord,
    request: RecordedRequest | undefined,
  ): void | Promise<void>;
  /** Does a call's work in its turn. @throws code 8 or 14 when there is none */
  run<T>(work: () => Promise<T>, context: HandlerContext): Promise<T>;
  /** A stream begins, which its handler gets in this context. @throws code 8 when too many are open */
  begin(method: DescMethod, context: HandlerContext): OpenStream & { readonly context: HandlerContext };
  /** A unary call has succeeded. */
  succeeded(record: RequestRecord): void;
  /** A unary call has failed with this code. */
  failed(method: DescMethod, record: RequestRecord, request: unknown, code: number): void;
  /** The error to answer; notes it in the record. */
  fail(error: unknown, record: RequestRecord, signal?: AbortSignal): ConnectError;
}

/** A function of an RPC, as protocols call it. */
export type Handler = (request: unknown, context: HandlerContext) => unknown;

/** The function of an RPC after what its calls pass: validation → passage → handler → errors. */
export function passing(method: DescMethod, handler: Handler, passage: Passage): Handler {
  if (method.methodKind === "unary") return unary(method, handler, passage);
  if (method.methodKind === "client_streaming") return clientStream(method, handler, passage);
  return answeringStream(method, handler, passage);
}

function unary(method: DescMethod, handler: Handler, passage: Passage): Handler {
  const check = validateRequest(method);
  const bodyField = bodyFieldOf(method);
  return async (request, context) => {
    const record = callRecord(context);
    try {
      const beganMs = performance.now();
      check(request);
      // To check 100,000 ids takes 100 ms, as to work on them does: not in one turn.
      await turnAfter(beganMs);
      const answer = await bounded(
        passage.run(() => Promise.resolve(handler(request, context)), context),
        context,
      );
      record.code = 0;
      passage.succeeded(record);
      return answer;
    } catch (error) {
      const answer = passage.fail(error, record, context.signal);
      passage.failed(method, record, request, answer.code);
      if (context.protocolName === "grpc") throw briefError(answer);
      throw bodyField === "" || context.protocolName !== "http" ? answer : pathsWithin(bodyField, answer);
    }
  };
}

/** Each message is checked as it comes; what is wrong with the stream itself (size, silence, form) is thrown by its iterator. */
function clientStream(method: DescMethod, handler: Handler, passage: Passage): Handler {
  const check = validateRequest(method);
  async function* checked(requests: AsyncIterable<unknown>, stream: OpenStream) {
    const messages = requests[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await stream.until(messages.next());
        if (next.done) return;
        check(next.value);
        yield next.value;
      }
    } finally {
      messages.return?.().catch(() => {});
    }
  }
  return async (requests, context) => {
    const record = callRecord(context);
    let stream: OpenStream | undefined;
    try {
      stream = passage.begin(method, context);
      const messages = checked(requests as AsyncIterable<unknown>, stream);
      // It does not count as a call in work for as long as it is open: what it stores does, portion by portion.
      await passage.run(async () => {}, context);
      const answer = await bounded(
        withHolder(holderOf(context), () => Promise.resolve(handler(messages, context))),
        context,
      );
      record.code = 0;
      return answer;
    } catch (error) {
      throw reasoned(briefError(passage.fail(error, record, context.signal)));
    } finally {
      stream?.close();
    }
  };
}

function answeringStream(method: DescMethod, handler: Handler, passage: Passage): Handler {
  const check = method.methodKind === "server_streaming" ? validateRequest(method) : () => {};
  return async function* answers(request, context) {
    const record = callRecord(context);
    let stream: ReturnType<Passage["begin"]> | undefined;
    let messages: AsyncIterator<unknown> | undefined;
    try {
      check(request);
      stream = passage.begin(method, context);
      await passage.run(async () => {}, context); // a long watch holds no place, but does not begin while the database is away
      messages = (handler(request, stream.context) as AsyncIterable<unknown>)[Symbol.asyncIterator]();
      for (let next = await stream.until(messages.next()); !next.done; next = await stream.until(messages.next()))
        yield next.value;
      record.code = 0;
    } catch (error) {
      throw reasoned(briefError(passage.fail(error, record, (stream?.context ?? context).signal)));
    } finally {
      stream?.close();
      // Not awaited: a handler that does not listen to its signal may never come to its end.
      messages?.return?.()?.catch(() => {});
    }
  };
}

/**
 * The outcome, or the reason why the call was ended. What started a `Call` waits no longer than that; here only its writes
 * are bounded, which leave their rows in the audit log when they end.
 */
function bounded<T>(outcome: Promise<T>, context: HandlerContext): Promise<T> {
  if (!(context instanceof Call)) return untilAborted(outcome, context);
  return isAudited(context.method) ? context.until(outcome) : outcome;
}

/** The JSON name of the field that is the body over /v1; empty when the body is the whole request, or there is none. */
function bodyFieldOf(method: DescMethod) {
  const { body } = optionOf(method, http);
  return method.input.fields.find((field) => field.name === body)?.jsonName ?? "";
}

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
    failed() {},
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
