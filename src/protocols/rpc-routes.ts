import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import {
  ConnectError,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { Compression, UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip, universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import { exhausted } from "../errors.ts";
import { type Pace, paced } from "../event-loop.ts";
import { recordOf, tenantOf } from "../rpc/context.ts";
import { writable } from "../rpc/errors.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import { bodyReader, brokenOff, type Request } from "../wire/body-reader.ts";
import { type Call, callStarter, timeoutOf, watchClient } from "../wire/call.ts";
import { endResponse, type Response, writeResponseHead } from "../wire/send-response.ts";
import { httpStatus } from "../wire/status.ts";
import { connectErrorBody, errorBody, type RpcRoute, sendBody } from "./error-body.ts";
import {
  type Form,
  formOf,
  isEncoding,
  messageInAddress,
  messages,
  oneMessage,
  type Reading,
  withoutBody,
} from "./framing.ts";
import { isGrpc, type UnaryRpc, unaryGrpc } from "./grpc.ts";
import { standIn, withLargeAnswer } from "./large-response.ts";
import { messageReader, type OwnReader } from "./message-reader.ts";
import { writeAnswer } from "./response-writer.ts";
import { streamStandIns, withStreamBytes } from "./shared-bytes.ts";

/** A service and its RPCs, wrapped by the pipeline. */
export interface ServedService {
  service: DescService;
  implementation: ServiceImpl<DescService>;
}

/** Bounds of what an RPC may send. */
export interface RpcLimits {
  /** Largest message of a service, bytes, on the wire and again after decompression. */
  messageBytesMax(service: DescService): number;
  /** Largest total of a stream that a client of a service sends, bytes. */
  streamBytesMax(service: DescService): number;
  streamIdleMs: number;
  deadlineMsMax: number;
  /** Items of a batch. */
  itemsMax: number;
  /** Counts the memory of all bodies; absent: it is not counted. */
  bodies?: RequestMemory | undefined;
  /** RPCs whose requests are read in a way of their own. */
  readers?: ReadonlyMap<DescMethod, OwnReader> | undefined;
}

interface Options {
  services: readonly ServedService[];
  admit: Pipeline["admit"];
  limits: RpcLimits;
  /** Notified of unexpected errors. */
  report(error: unknown, request: Request): void;
  /** Aborts when running calls must end. */
  stopping: AbortSignal;
}

const denialKey = createContextKey<ConnectError | undefined>(undefined);
const requestKey = createContextKey<unknown>(undefined);

/**
 * The routes of all RPCs by path (`/belfry.events.v1.EventQueryService/GetEvent`). Each call is admitted by its headers,
 * and its messages are read by us; what is refused is still answered in its own protocol, by Connect's handlers.
 */
export function rpcRoutes({ services, admit, limits, report, stopping }: Options): Map<string, RpcRoute> {
  const compressions = [compressionGzip, compressionBrotli];
  const startCall = callStarter(limits.deadlineMsMax, stopping);
  const grpc = unaryGrpc({ admit, compressions, deadlineMsMax: limits.deadlineMsMax, report, startCall });
  const router = createConnectRouter({
    acceptCompression: compressions,
    shutdownSignal: stopping,
    requestGate: ({ values }) => {
      const denial = values.get(denialKey);
      if (denial !== undefined) throw denial;
    },
  });
  for (const { service, implementation } of services) {
    const functions = onReadRequests(service, implementation);
    for (const method of service.methods) {
      router.rpc(method, functions[method.localName] as MethodImpl<typeof method>);
    }
  }
  const implementations = new Map(services.map(({ service, implementation }) => [service, implementation]));
  return new Map(
    router.handlers.map((handler) => {
      const functions = implementations.get(handler.service) as Record<string, UnaryRpc["call"]>;
      const call = functions[handler.method.localName] as UnaryRpc["call"];
      return [
        handler.requestPath,
        rpcRoute(handler, admit, limits, compressions, startCall, (rpc) => grpc({ call, ...rpc })),
      ];
    }),
  );
}

/**
 * Functions that are called with the request that was read, not with the empty one that Connect's handlers were given; of
 * unary ones they are given an empty answer where it is large.
 */
function onReadRequests(service: DescService, implementation: ServiceImpl<DescService>): Record<string, unknown> {
  const functions = implementation as Record<string, (request: unknown, context: HandlerContext) => unknown>;
  return Object.fromEntries(
    service.methods.map((method) => {
      const call = functions[method.localName] as (request: unknown, context: HandlerContext) => unknown;
      const onRead = (_: unknown, context: HandlerContext) => call(context.values.get(requestKey), context);
      const { localName, methodKind } = method;
      if (methodKind === "bidi_streaming") return [localName, onRead];
      if (methodKind === "server_streaming") {
        const stream = (none: unknown, context: HandlerContext) =>
          streamStandIns(method.output, onRead(none, context) as AsyncIterable<Message>, context);
        return [localName, stream];
      }
      const unary = async (none: unknown, context: HandlerContext) =>
        standIn(method, (await onRead(none, context)) as Message, context.values);
      return [localName, unary];
    }),
  );
}

function rpcRoute(
  handler: UniversalHandler,
  admit: Pipeline["admit"],
  limits: RpcLimits,
  compressions: Compression[],
  startCall: ReturnType<typeof callStarter>,
  serveGrpc: (rpc: Omit<UnaryRpc, "call">) => RpcRoute,
): RpcRoute {
  const { method } = handler;
  const { deadlineMsMax } = limits;
  const allow = [...handler.allowedMethods, "OPTIONS"].join(", ");
  const unary = method.methodKind === "unary";
  const streamed = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
  const requestOf = requestReader(method, streamed, limits);
  const answerGrpc = unary
    ? serveGrpc({ method, requestOf: (request) => requestOf(request, deadlineMsMax) })
    : undefined;

  /** Reads what the call sends. Returns the error to send instead, or nothing when the client has left. */
  async function withRequest(
    call: UniversalServerRequest,
    values: ContextValues,
    request: Request,
    response: Response,
    client: ReturnType<typeof watchClient>,
  ): Promise<UniversalServerRequest | undefined> {
    const inAddress = call.method === "GET" ? messageInAddress(call.url) : undefined;
    const form = inAddress?.form ?? formOf(call.header.get("content-type") ?? "");
    const encoding = inAddress?.encoding ?? call.header.get(form?.encodingHeader ?? "content-encoding");
    // Connect's handlers say what is wrong with it.
    if (form === undefined || !isEncoding(encoding)) return call;
    let refusal: ConnectError;
    try {
      const { method: httpMethod, url, header } = call;
      const timeoutMs = unary ? askedMs(header, form, deadlineMsMax) : undefined;
      const init = { method, protocol: "connect", httpMethod, url, header, values, timeoutMs, bounded: unary };
      const timed = startCall(init);
      client.started(timed);
      const given = requestOf(request, timed.timeoutMs());
      if (inAddress !== undefined) given.body.whole = async () => inAddress.bytes;
      response.once("close", given.body.release);
      const reading = { ...given, form, encoding, pace: paced(client.check, tenantOf(request)) };
      values.set(requestKey, streamed ? messages(reading) : await oneMessage(reading));
      if (unary) handOn(timed, header, form);
      return withoutBody(call, method, form);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      refusal = error;
    }
    if (await brokenOff(request)) return undefined;
    const record = recordOf(request);
    if (record !== undefined) record.code = refusal.code;
    values.set(denialKey, writable(refusal));
    return call;
  }

  return async (request, response) => {
    if (!handler.allowedMethods.includes(request.method ?? "")) return refuseMethod(request, response, allow);
    if (answerGrpc !== undefined && isGrpc(request)) return answerGrpc(request, response);
    const call = universalCall(request, response);
    if (call === undefined) return sendBody(response, 400, errorBody(3, "the Host header or the path is malformed"));
    const { values, denial } = await admitted(() => admit(method, call.header, request));
    const type = call.header.get("content-type") ?? "";
    if (call.method === "POST" && !handler.supportedContentType(type)) return refuseType(response, type, denial);
    const client = watchClient(response);
    try {
      const read = denial === undefined ? await withRequest(call, values, request, response, client) : call;
      if (read === undefined) return;
      const asked = { ...read, contextValues: values };
      const answer = await answerOf(handler, asked, compressions, paced(client.check, tenantOf(request)));
      await writeAnswer(request, response, answer, call.signal);
    } finally {
      client.ended();
    }
  };
}

/** What the handler answers, with what it was not to encode itself. */
async function answerOf(
  handler: UniversalHandler,
  asked: UniversalServerRequest & { contextValues: ContextValues },
  compressions: Compression[],
  pace: Pace,
) {
  const answer = await handler(asked);
  if (handler.method.methodKind === "server_streaming") return withStreamBytes(answer, asked);
  try {
    return await withLargeAnswer(handler.method, asked, answer, compressions, pace);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    asked.contextValues.set(denialKey, writable(error));
    return await handler(asked);
  }
}

/** What reads the requests of an RPC, with their bounds. */
function requestReader(method: DescMethod, streamed: boolean, limits: RpcLimits) {
  const { parent: service } = method;
  const usual = messageReader(method, { bytesMax: limits.messageBytesMax(service), itemsMax: limits.itemsMax });
  const own = limits.readers?.get(method);
  // A message is bounded by its reader; what is added is room for its envelope.
  const bytesMax = streamed ? limits.streamBytesMax(service) : usual.bytesMax + 1024;
  return (request: Request, totalMs: number | undefined): Pick<Reading, "body" | "reader" | "reserve"> => {
    const record = recordOf(request);
    if (record !== undefined) record.conversation = method.methodKind === "bidi_streaming";
    const reserve = (bytes: number) => record && limits.bodies?.reserve(record, bytes);
    const tooLarge = () => exhausted(`the request is larger than ${bytesMax} bytes`);
    const bounds = { bytesMax, idleMs: limits.streamIdleMs, tooLarge, received: reserve };
    const reader = own === undefined ? usual : own(usual, () => record?.principal?.tenantId);
    return { body: bodyReader(request, totalMs === undefined ? bounds : { ...bounds, totalMs }), reader, reserve };
  };
}

async function admitted(
  admit: () => Promise<ContextValues>,
): Promise<{ values: ContextValues; denial?: ConnectError }> {
  try {
    return { values: await admit() };
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return { values: createContextValues().set(denialKey, error), denial: error };
  }
}

const deadlineHeader = ({ enveloped }: Form) => (enveloped ? "grpc-timeout" : "connect-timeout-ms");

function askedMs(header: Headers, form: Form, deadlineMsMax: number): number | undefined {
  const name = deadlineHeader(form);
  return timeoutOf({ [name]: header.get(name) ?? undefined }, deadlineMsMax);
}

/** Writes what is left of the time into the headers, for Connect's handler. */
function handOn(call: Call, header: Headers, form: Form): void {
  const leftMs = Math.ceil(Math.max(0, call.timeoutMs() ?? 0));
  header.set(deadlineHeader(form), `${leftMs}${form.enveloped ? "m" : ""}`);
}

function universalCall(request: Request, response: Response): UniversalServerRequest | undefined {
  try {
    const none: AsyncIterable<Uint8Array> = emptyIterable();
    return { ...universalRequestFromNodeRequest(request, response as never, undefined, undefined), body: none };
  } catch {
    return undefined;
  }
}

async function* emptyIterable(): AsyncGenerator<Uint8Array> {}

function refuseMethod(request: Request, response: Response, allow: string) {
  if (request.method === "OPTIONS") {
    writeResponseHead(response, 204, { allow });
    return endResponse(response);
  }
  sendBody(response, 405, errorBody(12, `this path takes ${allow}, not ${request.method}`), { allow });
}

function refuseType(response: Response, type: string, denial: ConnectError | undefined) {
  if (denial !== undefined) return sendDenial(response, denial);
  sendBody(response, 415, errorBody(3, `the content type ${JSON.stringify(type)} is none of this RPC's`));
}

function sendDenial(response: Response, denial: ConnectError) {
  const headers: Record<string, string> = {};
  for (const [name, value] of denial.metadata) headers[name] = value;
  sendBody(response, httpStatus(denial.code), connectErrorBody(denial), headers);
}
