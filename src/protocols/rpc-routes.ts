import { create, type DescMethod, type DescService, type Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { Code } from "@connectrpc/connect";
import { parseContentType as connectType } from "@connectrpc/connect/protocol-connect";
import { parseContentType as grpcType } from "@connectrpc/connect/protocol-grpc";
import { parseContentType as webType } from "@connectrpc/connect/protocol-grpc-web";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { reasoned } from "../error-reasons.ts";
import { recordOf } from "../rpc/context.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import type { Request } from "../wire/body-reader.ts";
import { copyHeaders } from "../wire/headers.ts";
import { endResponse, type Response, writeResponseHead } from "../wire/send-response.ts";
import { errorStatus, refusalOf } from "../wire/status.ts";
import { codingOf, connectUnary } from "./connect.ts";
import { type Engine, type Exchange, type Protocol, type Rpc, rpcEngine } from "./engine.ts";
import { connectErrorBody, errorBody, type RpcRoute, sendBody } from "./error-body.ts";
import { answerBytes, type WireRpc } from "./framing.ts";
import { grpc } from "./grpc.ts";
import { grpcWeb } from "./grpc-web.ts";
import { messageReader, type OwnReader } from "./message-reader.ts";

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
  /** Counts the memory of all bodies. */
  bodies: RequestMemory;
  /** RPCs whose requests are read in a way of their own. */
  readers: ReadonlyMap<DescMethod, OwnReader>;
}

/** Serves RPCs over gRPC, gRPC-Web and Connect. */
export interface RpcOptions {
  services: readonly ServedService[];
  admit: Pipeline["admit"];
  limits: RpcLimits;
  /** Notified of unexpected errors. */
  report(error: unknown, request: Request): void;
  /** Aborts when running calls must end. */
  stopping: AbortSignal;
}

/** An RPC over gRPC, gRPC-Web and Connect. */
export type WiredRpc = Rpc & WireRpc;

/** The path of an RPC, `/belfry.events.v1.EventQueryService/GetEvent`. */
export const pathOfRpc = ({ parent, name }: DescMethod): string => `/${parent.typeName}/${name}`;

/** Joins what the protocols know of the RPCs of these services, unary ones or streams. */
export function wiredRpcs({ services, limits }: RpcOptions, unary: boolean): WiredRpc[] {
  return services.flatMap(({ service, implementation }) => {
    const functions = implementation as Record<string, Rpc["call"]>;
    const methods = service.methods.filter(({ methodKind }) => (methodKind === "unary") === unary);
    return methods.map((method) => wiredRpc(method, functions[method.localName] as Rpc["call"], limits));
  });
}

function wiredRpc(method: DescMethod, call: Rpc["call"], limits: RpcLimits): WiredRpc {
  const { itemsMax, streamIdleMs: idleMs } = limits;
  const usual = messageReader(method, { bytesMax: limits.messageBytesMax(method.parent), itemsMax });
  const own = limits.readers.get(method);
  return {
    method,
    call,
    idleMs,
    readerOf: ({ record }) => (own === undefined ? usual : own(usual, () => record?.principal?.tenantId)),
    bytesOf: (answer, binary, pace) =>
      answerBytes(method.output, create(method.output, answer as Message), binary, pace),
  };
}

/** The routes of all unary RPCs by path. */
export function unaryRoutes(options: RpcOptions): Map<string, RpcRoute> {
  const { admit, limits, report, stopping } = options;
  const { deadlineMsMax, bodies } = limits;
  const serve = rpcEngine<WiredRpc>({ admit, deadlineMsMax, stopping, report, bodies });
  return new Map(wiredRpcs(options, true).map((rpc) => [pathOfRpc(rpc.method), unaryRoute(rpc, serve)]));
}

function unaryRoute(rpc: WiredRpc, serve: Engine<WiredRpc>): RpcRoute {
  const { idempotency } = rpc.method;
  const methods = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? ["POST", "GET"] : ["POST"];
  const route: RpcRoute = async (request, response) => {
    if (!methods.includes(request.method ?? "")) return refuseMethod(methods, request, response);
    return serve(protocolOf(request) ?? untyped, rpc, request, response);
  };
  return Object.assign(route, { takesGrpc: true });
}

const both = <T>(make: (binary: boolean) => T): readonly [T, T] => [make(false), make(true)];
const protocols = {
  grpc: both((binary) => grpc<WiredRpc>(binary)),
  web: both((binary) => grpcWeb<WiredRpc>(binary, false)),
  webText: both((binary) => grpcWeb<WiredRpc>(binary, true)),
  connect: both((binary) => connectUnary<WiredRpc>(binary, false)),
  connectGet: both((binary) => connectUnary<WiredRpc>(binary, true)),
};

function protocolOf({ method, url = "", headers }: Request): Protocol<WiredRpc> | undefined {
  const of = (pair: readonly [Protocol<WiredRpc>, Protocol<WiredRpc>], binary: boolean) => pair[binary ? 1 : 0];
  if (method === "GET") {
    const coding = codingOf(url);
    return coding && of(protocols.connectGet, coding === "proto");
  }
  const type = headers["content-type"] ?? "";
  const plain = connectType(type);
  if (plain !== undefined) return plain.stream ? undefined : of(protocols.connect, plain.binary);
  const framed = grpcType(type);
  if (framed !== undefined) return of(protocols.grpc, framed.binary);
  const web = webType(type);
  return web && of(web.text ? protocols.webText : protocols.web, web.binary);
}

/** Refuses a call of no content type of ours, once it is admitted. */
const untyped: Protocol<WiredRpc> = {
  name: "connect",
  read(_rpc, { request }) {
    throw unknownType(request);
  },
  write() {},
  refuse: (_rpc, error, exchange) => sendRefusal(error, exchange),
};

/** The refusal of a content type, or of a GET whose address names no coding. */
export function unknownType({ method, headers }: Request) {
  if (method === "GET")
    return refusalOf(Code.InvalidArgument, 415, "the query must say encoding=json or encoding=proto");
  const type = JSON.stringify((headers["content-type"] ?? "").slice(0, 100));
  return refusalOf(Code.InvalidArgument, 415, `the content type ${type} is none of this RPC's`);
}

const noOverrides: ReadonlyMap<number, number> = new Map();

/** Sends an error where no protocol prescribes a form. */
export function sendRefusal(
  error: Parameters<typeof connectErrorBody>[0],
  { response }: Pick<Exchange, "response">,
): void {
  const headers: Record<string, string | string[]> = {};
  copyHeaders(error.metadata, headers);
  sendBody(response, errorStatus(error, noOverrides), connectErrorBody(error), headers);
}

/** Answers OPTIONS, and refuses other HTTP methods than those of an RPC. */
export function refuseMethod(methods: readonly string[], request: Request, response: Response): void {
  const allow = [...methods, "OPTIONS"].join(", ");
  if (request.method === "OPTIONS") {
    writeResponseHead(response, 204, { allow });
    endResponse(response);
  } else
    sendBody(
      response,
      405,
      errorBody(12, `this path takes ${allow}, not ${request.method}`, ErrorReason.METHOD_NOT_ALLOWED),
      { allow },
    );
}

/** Answers a call of gRPC or gRPC-Web at a path where there is nothing, in its form. Returns whether it is one. */
export function answerMissingRpc(path: string, request: Request, response: Response): boolean {
  const protocol = request.method === "POST" ? protocolOf(request) : undefined;
  if (protocol === undefined || protocol.name === "connect") return false;
  const error = reasoned(refusalOf(Code.Unimplemented, 404, `there is nothing at ${path}`, ErrorReason.PATH_NOT_FOUND));
  const record = recordOf(request);
  if (record !== undefined) record.code = error.code;
  void protocol.refuse({} as WiredRpc, error, { request, response } as Exchange, undefined);
  return true;
}
