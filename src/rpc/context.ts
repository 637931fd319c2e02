import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Principal } from "../auth/principal.ts";
import type { Hold, Holder } from "../limiter.ts";
import type { Bodies } from "./bodies.ts";

/** What is known of one request, filled in on its way; its end makes one log line of it. */
export interface RequestRecord {
  readonly requestId: string;
  /** On the clock of `performance.now()`. */
  readonly startMs: number;
  rpc: string | undefined;
  /** gRPC code of the answer, 0 for good; undefined until it is known. */
  code: number | undefined;
  principal: Principal | undefined;
  /** Invites the body of a client that waits for 100 Continue. */
  invite: (() => void) | undefined;
  /** The RPC, while the call still owes the audit log its row. */
  owes: DescMethod | undefined;
  /** The request is over, answered or not; its handler may still be at work. */
  over: boolean;
  /** The connection that it came over, by a name of its own. */
  connection: string;
  /** The memory that it takes, and what counts it. */
  body: Hold | undefined;
  bodies: Bodies | undefined;
}

const recordOnRequest = Symbol("record");

/** A request as Node gives it, over HTTP/1.1 or HTTP/2. */
export interface RecordedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly socket?: { readonly remoteAddress?: string | undefined };
  [recordOnRequest]?: RequestRecord;
}

/** Starts the record of a request. */
export function openRecord(request: RecordedRequest, requestId: string): RequestRecord {
  const record: RequestRecord = {
    requestId,
    startMs: performance.now(),
    rpc: undefined,
    code: undefined,
    principal: undefined,
    invite: undefined,
    owes: undefined,
    over: false,
    connection: "",
    body: undefined,
    bodies: undefined,
  };
  request[recordOnRequest] = record;
  return record;
}

/** The record of a request that the port took in. */
export function recordOf(request: RecordedRequest): RequestRecord | undefined {
  return request[recordOnRequest];
}

const recordKey = createContextKey<RequestRecord | undefined>(undefined);

/** The context of an admitted call. */
export function admittedValues(record: RequestRecord): ContextValues {
  return createContextValues().set(recordKey, record);
}

/** The record behind a call. */
export function callRecord(context: HandlerContext): RequestRecord {
  const record = context.values.get(recordKey);
  if (record === undefined) throw new Error(`${context.method.name} was called without admission`);
  return record;
}

/** Who calls. */
export function principalOf(context: HandlerContext): Principal {
  const { principal } = callRecord(context);
  if (principal === undefined) throw new Error(`${context.method.name} was called without a principal`);
  return principal;
}

/** Whose shares a call uses. */
export function holderOf(context: HandlerContext): Holder {
  return holderOfRecord(callRecord(context));
}

/** Whose shares a request uses; without a principal nobody's. */
export function holderOfRecord(record: RequestRecord | undefined): Holder {
  const principal = record?.principal;
  return principal === undefined ? {} : { tenant: principal.tenantId, key: principal.keyId };
}
