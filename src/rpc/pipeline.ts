import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues, ServiceImpl } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { Callers } from "../auth/callers.ts";
import type { Principal } from "../auth/principal.ts";
import { unsupported } from "../errors.ts";
import type { Holder } from "../limiter.ts";
import { untilAborted } from "../wire/call.ts";
import type { Admit, AdmittedCall } from "./admission.ts";
import { admission } from "./admission.ts";
import type { RecordAudit } from "./audit.ts";
import { authenticatedPassage } from "./authenticated.ts";
import {
  admittedValues,
  callRecord,
  holderOfRecord,
  openRecord,
  type RecordedRequest,
  type RequestRecord,
  recordOf,
  requestId,
} from "./context.ts";
import { toAnswer } from "./errors.ts";
import { logUnexpected } from "./log.ts";
import { openStreams } from "./open-streams.ts";
import { type Handler, type Passage, passing, type UnauthenticatedStreams, unauthenticatedPassage } from "./passage.ts";
import { noteRequests } from "./requests-in-work.ts";

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
  /** The RPCs of a service that is asked without a key: a bound of streams → handler → errors. */
  implementUnauthenticated<S extends DescService>(service: S, implementation: ServiceImpl<S>): ServiceImpl<S>;
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
  /** The file in which requests are noted for the process that has started this one, and this one's number. */
  requestsFd?: number | undefined;
  process?: number | undefined;
  /** Whether there is room for a call that is allowed, before its body is read. @throws code 8 when there is none. */
  room?(method: DescMethod, header: Headers, principal: Principal, record: RequestRecord): void;
  /** Streams at once. */
  streamsMax?: number;
  unauthenticated?: UnauthenticatedStreams;
}

const hourMs = 3_600_000;

/** Builds the pipeline. Its order, in one place: key, permission, room (admit); validation, gate, handler, errors (implement). */
export function pipeline({ streamsMax = 5000, unauthenticated, ...options }: Options): Pipeline {
  const { verify, gate, log } = options;
  const requests = noteRequests(options.requestsFd, options.process);
  const streams = openStreams(verify, streamsMax);
  const enter = admission(options);
  const fail = failedCall.bind(undefined, log);
  const withKey = authenticatedPassage({ ...options, enter, streams, fail });
  const unkeyedStreams = unauthenticated ?? { streamsMax: Math.ceil(streamsMax / 20), streamMsMax: hourMs };
  const withoutKey = unauthenticatedPassage(unkeyedStreams, fail);
  /** The services that are asked without a key, whatever key comes with a call. */
  const open = new Set<DescService>();

  return {
    async admit(method, header, request) {
      const record = (request && recordOf(request)) ?? openRecord({ headers: {} }, requestId(undefined));
      record.rpc = nameOf(method);
      const passage = open.has(method.parent) ? withoutKey : withKey;
      await passage.admit(method, header, record, request);
      requests.began(record);
      record.sendContinue?.();
      return admittedValues(record);
    },
    foreign: foreignCalls({ admit: enter, gate, fail, began: requests.began }),
    endStreams: streams.endAnswering,
    openStreams: streams.count,
    implement(service, implementation) {
      const conversation = service.methods.find(({ methodKind }) => methodKind === "bidi_streaming");
      if (conversation !== undefined)
        throw new Error(`${nameOf(conversation)}: streams in both directions are not served`);
      return functionsOf(service, implementation, withKey);
    },
    implementUnauthenticated(service, implementation) {
      open.add(service);
      return functionsOf(service, implementation, withoutKey);
    },
    ended(record) {
      withKey.ended(record);
      requests.ended(record);
    },
  };
}

function functionsOf<S extends DescService>(
  service: S,
  implementation: Partial<ServiceImpl<S>>,
  passage: Passage,
): ServiceImpl<S> {
  const handlers = implementation as Record<string, Handler | undefined>;
  const functions = service.methods.map((method) => {
    const handler = handlers[method.localName];
    return [method.localName, handler === undefined ? missing(method) : passing(method, handler, passage)];
  });
  return Object.fromEntries(functions) as ServiceImpl<S>;
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

const names = new WeakMap<DescMethod, string>();

function nameOf(method: DescMethod) {
  let name = names.get(method);
  if (name === undefined) {
    name = `${method.parent.typeName}/${method.name}`;
    names.set(method, name);
  }
  return name;
}

/** What a call that failed returns: the code is noted in its record, and the log has the cause of what is unexpected. */
export function failedCall(log: Logger, error: unknown, record: RequestRecord, signal?: AbortSignal): ConnectError {
  const { answer, unexpected } = toAnswer(error, record.requestId, signal);
  record.code = answer.code;
  if (unexpected) logUnexpected(log, record, error);
  return answer;
}

/** Calls that are no RPCs of ours, with the bounds that RPCs have. They write nothing that the audit log has. */
export interface ForeignCalls {
  /** Before a byte of the body is read. @throws ConnectError 16, 7, 8, or 14 while the database is away. */
  admit(call: AdmittedCall, header: Headers, record: RequestRecord, request: RecordedRequest): Promise<void>;
  /** Does a part of an admitted call's work, in its turn, until the signal aborts. @throws the ConnectError to answer */
  work<T>(record: RequestRecord, signal: AbortSignal, part: () => Promise<T>): Promise<T>;
  /** The error to answer for one that was thrown outside of these; notes it in the record. */
  fail(error: unknown, record: RequestRecord, signal?: AbortSignal): ConnectError;
}

interface ForeignParts {
  admit: Admit;
  gate: { run<T>(fn: () => Promise<T>, who: Holder): Promise<T> };
  fail: ForeignCalls["fail"];
  /** Hears of each call that is admitted. */
  began(record: RequestRecord): void;
}

/** Builds them of what RPCs pass. */
export function foreignCalls({ admit, gate, fail, began }: ForeignParts): ForeignCalls {
  return {
    fail,
    async admit(call, header, record, request) {
      try {
        await admit(call, header, record, request);
      } catch (error) {
        throw fail(error, record);
      }
      began(record);
      record.sendContinue?.();
    },
    async work(record, signal, part) {
      try {
        return await untilAborted(gate.run(part, holderOfRecord(record)), { signal });
      } catch (error) {
        throw fail(error, record, signal);
      }
    },
  };
}
