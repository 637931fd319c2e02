import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Principal } from "../auth/principal.ts";
import { type Holder, type LimiterShare, networkOf } from "../limiter.ts";
import type { RequestMemory } from "./request-memory.ts";

/** What is known of one request, filled in on its way; its end makes one log line of it. */
export interface RequestRecord {
  readonly requestId: string;
  /** On the clock of `performance.now()`. */
  readonly startMs: number;
  rpc: string | undefined;
  /** The protocol of another tool that it speaks, and what it calls there, when it is no RPC. */
  integration: { readonly name: string; readonly operation: string } | undefined;
  /** gRPC code of the answer, 0 for good; undefined until it is known. */
  code: number | undefined;
  principal: Principal | undefined;
  /** What it was admitted by, as `credentialOf` of src/auth/session-cookie.ts gives it. */
  credential: string | null;
  /** The network address that it came from. */
  address: string;
  /** Sends 100 Continue to a client that waits for it before it sends its body. */
  sendContinue: (() => void) | undefined;
  /** The RPC, while its row in the audit log is not written yet. */
  auditPending: DescMethod | undefined;
  /** The request is over, answered or not; its handler may still be at work. */
  over: boolean;
  /** The name of its connection, unique in this process. */
  connection: string;
  /** The memory that it takes, and what counts it. */
  body: LimiterShare | undefined;
  bodies: RequestMemory | undefined;
}

const recordOnRequest = Symbol("record");

/** A request as Node gives it, over HTTP/1.1 or HTTP/2. */
export interface RecordedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly method?: string | undefined;
  readonly socket?: { readonly remoteAddress?: string | undefined };
  [recordOnRequest]?: RequestRecord;
}

/** Starts the record of a request. */
export function openRecord(request: RecordedRequest, requestId: string): RequestRecord {
  const record: RequestRecord = {
    requestId,
    startMs: performance.now(),
    rpc: undefined,
    integration: undefined,
    code: undefined,
    principal: undefined,
    credential: null,
    address: request.socket?.remoteAddress ?? "",
    sendContinue: undefined,
    auditPending: undefined,
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

/** The tenant of a request that was admitted; undefined before. */
export function tenantOf(request: RecordedRequest): string | undefined {
  return recordOf(request)?.principal?.tenantId;
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

/** The principal of a call. */
export function principalOf(context: HandlerContext): Principal {
  const { principal } = callRecord(context);
  if (principal === undefined) throw new Error(`${context.method.name} was called without a principal`);
  return principal;
}

/** The holder whose shares a call uses. */
export function holderOf(context: HandlerContext): Holder {
  return holderOfRecord(callRecord(context));
}

/** The holder whose shares a request uses; without a principal that is the address that it came from, where it is known. */
export function holderOfRecord(record: RequestRecord | undefined): Holder {
  if (record === undefined) return {};
  const { principal, address } = record;
  if (principal !== undefined) return { tenant: principal.tenantId, key: principal.keyId };
  return address === "" ? {} : { address: networkOf(address) };
}

const process = randomBytes(6).toString("hex");
let count = 0;

/** The caller's own x-request-id when it is short and plain, else a new id: one of this process and a running number. */
export function requestId(header: string | string[] | undefined): string {
  if (typeof header === "string" && /^[\w.:-]{1,64}$/.test(header)) return header;
  count += 1;
  return `${process}-${count.toString(36)}`;
}
