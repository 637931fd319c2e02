import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { Code, type ContextValues, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { Logger } from "pino";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { Callers } from "../auth/callers.ts";
import { permissionOf } from "../auth/permission.ts";
import type { Principal } from "../auth/principal.ts";
import type { WrongKeys } from "../auth/wrong-keys.ts";
import { withHolder } from "../db/request-scope.ts";
import { unsupported } from "../errors.ts";
import type { Holder } from "../limiter.ts";
import { Call, untilAborted } from "../wire/call.ts";
import { admission } from "./admission.ts";
import { isAudited, type RecordAudit, requestedResource } from "./audit.ts";
import {
  admittedValues,
  callRecord,
  holderOf,
  openRecord,
  type RecordedRequest,
  type RequestRecord,
  recordOf,
} from "./context.ts";
import { briefError, pathsWithin } from "./errors.ts";
import { failedCall } from "./failed-call.ts";
import { type ForeignCalls, foreignCalls } from "./foreign-calls.ts";
import { type OpenStream, openStreams } from "./open-streams.ts";
import { requestId } from "./request-id.ts";
import { validateRequest } from "./validate.ts";

/** What every call passes, whatever its protocol. */
export interface Pipeline {
  /**
   * Before a byte of the body is read: key → principal → permission → room.
   * @throws ConnectError 16, 7, 8, or 14 while the database is away.
   */
  admit(method: DescMethod, header: Headers, request?: RecordedRequest): Promise<ContextValues>;
  /**
   * The RPCs of a service as both front ends call them: validation → handler → errors. RPCs that `implementation` lacks
   * answer code 12. Each wants a context with the values that `admit` returned.
   */
  implement<S extends DescService>(service: S, implementation: Partial<ServiceImpl<S>>): ServiceImpl<S>;
  /** What calls pass that are no RPCs of ours. */
  readonly foreign: ForeignCalls;
  /** A request is over. What was admitted and failed before its RPC was called (an unreadable body) gets its audit row here. */
  ended(record: RequestRecord): void;
  /** How many streams are open. */
  openStreams(): number;
  /** The server stops: streams that answer end with code 14, and none begin. */
  endStreams(): void;
}

interface Options extends Callers {
  /** Refuses at once while the database is away, and bounds the calls in work. */
  gate: { run<T>(fn: () => Promise<T>, who: Holder): Promise<T> };
  log: Logger;
  /** Keeps what a writing RPC was refused or failed with. The rows of those that succeed are their handlers' own. */
  recordAudit?: RecordAudit;
  /** Delays answers to addresses that send many wrong keys. */
  wrongKeys?: WrongKeys;
  /** Whether there is room for a call that is allowed, before its body is read. @throws code 8 when there is none. */
  room?(method: DescMethod, header: Headers, principal: Principal, record: RequestRecord): void;
  /** Streams at once. */
  streamsMax?: number;
}

type Handler = (request: unknown, context: HandlerContext) => unknown;

/** Builds the pipeline. Its order, in one place: key, permission, room (admit); validation, gate, handler, errors (implement). */
export function pipeline(options: Options): Pipeline {
  const { verify, gate, log, recordAudit, wrongKeys, room, streamsMax = 5000 } = options;
  const streams = openStreams(verify, streamsMax);
  const enter = admission(options, wrongKeys);
  const fail = failedCall.bind(undefined, log);

  async function auditFailure(method: DescMethod, record: RequestRecord, request: unknown, code: number) {
    const { principal, requestId } = record;
    if (recordAudit === undefined || principal === undefined || !isAudited(method)) return;
    record.auditPending = undefined;
    await recordAudit({
      principal,
      rpc: nameOf(method),
      resource: requestedResource(method, request),
      code,
      requestId,
    });
  }

  async function admit(method: DescMethod, header: Headers, request?: RecordedRequest) {
    const record = (request && recordOf(request)) ?? openRecord({ headers: {} }, requestId(undefined));
    const name = nameOf(method);
    record.rpc = name;
    const call = { name, permission: permissionOf(method), room: room?.bind(undefined, method) ?? (() => {}) };
    try {
      await enter(call, header, record, request);
      if (isAudited(method)) record.auditPending = method;
    } catch (error) {
      const answer = fail(error, record);
      await auditFailure(method, record, undefined, answer.code);
      throw answer;
    }
    record.sendContinue?.();
    return admittedValues(record);
  }

  function unary(method: DescMethod, handler: Handler): Handler {
    const check = validateRequest(method);
    const bodyField = bodyFieldOf(method);
    return async (request, context) => {
      const record = callRecord(context);
      try {
        check(request);
        const answer = await bounded(
          gate.run(() => Promise.resolve(handler(request, context)), holderOf(context)),
          context,
        );
        record.code = 0;
        if (record.auditPending !== undefined) log.error({ rpc: record.rpc }, "a write has left no audit row");
        record.auditPending = undefined;
        return answer;
      } catch (error) {
        const answer = fail(error, record, context.signal);
        // A call that was answered before (a deadline, a client that left) has its row.
        if (!record.over) await auditFailure(method, record, request, answer.code);
        if (context.protocolName === "grpc") throw briefError(answer);
        throw bodyField === "" || context.protocolName !== "http" ? answer : pathsWithin(bodyField, answer);
      }
    };
  }

  function begin(method: DescMethod, context: HandlerContext) {
    return streams.begin(method, callRecord(context).credential, holderOf(context), context.signal);
  }

  // Each message is checked as it comes; what is wrong with the stream itself (size, silence, form) is thrown by its iterator.
  function clientStream(method: DescMethod, handler: Handler): Handler {
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
        stream = begin(method, context);
        const who = holderOf(context);
        const messages = checked(requests as AsyncIterable<unknown>, stream);
        // It does not count as a call in work for as long as it is open: what it stores does, portion by portion.
        await gate.run(async () => {}, who);
        const answer = await bounded(
          withHolder(who, () => Promise.resolve(handler(messages, context))),
          context,
        );
        record.code = 0;
        return answer;
      } catch (error) {
        throw briefError(fail(error, record, context.signal));
      } finally {
        stream?.close();
      }
    };
  }

  function serverStream(method: DescMethod, handler: Handler): Handler {
    const check = validateRequest(method);
    return async function* answers(request, context) {
      const record = callRecord(context);
      let stream: OpenStream | undefined;
      let messages: AsyncIterator<unknown> | undefined;
      try {
        check(request);
        stream = begin(method, context);
        await gate.run(async () => {}, holderOf(context)); // a long watch holds no place, but does not begin while the database is away
        messages = (handler(request, context) as AsyncIterable<unknown>)[Symbol.asyncIterator]();
        for (let next = await stream.until(messages.next()); !next.done; next = await stream.until(messages.next()))
          yield next.value;
        record.code = 0;
      } catch (error) {
        throw briefError(fail(error, record, context.signal));
      } finally {
        stream?.close();
        // Not awaited: a handler that does not listen to its signal may never come to its end.
        messages?.return?.()?.catch(() => {});
      }
    };
  }

  function wrap(method: DescMethod, handler: Handler): Handler {
    if (method.methodKind === "unary") return unary(method, handler);
    if (method.methodKind === "client_streaming") return clientStream(method, handler);
    if (method.methodKind === "server_streaming") return serverStream(method, handler);
    throw new Error(`${nameOf(method)}: streams in both directions are not served`);
  }

  return {
    admit,
    foreign: foreignCalls({ admit: enter, gate, fail }),
    endStreams: streams.endAnswering,
    openStreams: streams.count,
    implement(service, implementation) {
      const handlers = implementation as Record<string, Handler | undefined>;
      const wrapped: Record<string, Handler> = {};
      for (const method of service.methods) {
        const handler = handlers[method.localName];
        wrapped[method.localName] = handler === undefined ? missing(method) : wrap(method, handler);
      }
      return wrapped as ServiceImpl<typeof service>;
    },
    ended(record) {
      record.over = true;
      // A call that ended without an answer was given up by its client: code 1.
      if (record.auditPending !== undefined)
        void auditFailure(record.auditPending, record, undefined, record.code || Code.Canceled);
    },
  };
}

/**
 * The outcome, or the reason why the call was ended. What started a `Call` waits no longer than that; here only its writes
 * are bounded, which leave their rows in the audit log when they end.
 */
function bounded<T>(outcome: Promise<T>, context: HandlerContext): Promise<T> {
  return context instanceof Call && !isAudited(context.method) ? outcome : untilAborted(outcome, context);
}

/** An RPC that is declared and not built yet: code 12, whatever the request holds. */
function missing(method: DescMethod): Handler {
  const refusal = () => unsupported(`${nameOf(method)} is not implemented yet`);
  if (method.methodKind === "server_streaming") {
    // biome-ignore lint/correctness/useYield: it fails before its first message
    return async function* (_request, context) {
      const error = refusal();
      callRecord(context).code = error.code;
      throw error;
    };
  }
  return (_request, context) => {
    const error = refusal();
    callRecord(context).code = error.code;
    throw error;
  };
}

/** The JSON name of the field that is the body over /v1; empty when the body is the whole request, or there is none. */
function bodyFieldOf(method: DescMethod) {
  const { body } = getOption(method, http);
  return method.input.fields.find((field) => field.name === body)?.jsonName ?? "";
}

const names = new WeakMap<DescMethod, string>();

function nameOf(method: DescMethod) {
  let name = names.get(method);
  if (name === undefined) {
    name = `${method.parent.typeName}/${method.name}`;
    names.set(method, name);
  }
  return name;
}
