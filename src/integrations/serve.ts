import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import type { ForeignRoutes } from "../http/port.ts";
import { clientOf, type Exchange, openBody, type Protocol, readBody } from "../protocols/engine.ts";
import { errorBody, pathOf, type RpcRoute, sendBody } from "../protocols/error-body.ts";
import type { WireRpc } from "../protocols/framing.ts";
import { grpc, isGrpc } from "../protocols/grpc.ts";
import type { RequestRecord } from "../rpc/context.ts";
import { recordOf } from "../rpc/context.ts";
import { checkEncoding } from "../transcoding/body.ts";
import type { CallTime } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import { memoryFactor } from "../wire/message-limits.ts";
import { endResponse, sendWhole, writePieces, writeResponseHead } from "../wire/send-response.ts";
import { codeOfStatus, errorStatus, refusalOf } from "../wire/status.ts";
import { foreignEngine, type ServedOperation, type Serving } from "./foreign-engine.ts";
import type { Answer, Integration, Operation } from "./integration.ts";

const noOverrides: ReadonlyMap<number, number> = new Map();

/** Serves the operations of one path, by their HTTP methods; of a path that has none, the tool's form of 404. */
export function httpRoute(
  serving: Serving,
  integration: Integration,
  operations: ReadonlyMap<string, Operation>,
): RpcRoute {
  const allow = [...operations.keys(), ...(operations.has("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");
  const { receiverBytesMax: bytesMax, streamIdleMs: idleMs } = serving.config;
  const serve = foreignEngine(serving, integration);
  const protocol: Protocol<ServedOperation, CallTime> = {
    name: "http",
    async read({ operation: { body } }, exchange) {
      if (body === undefined) return Buffer.alloc(0);
      if (body === "as sent") return openBody(exchange, { bytesMax, idleMs }).whole();
      checkEncoding(exchange.request.headers["content-encoding"]);
      return readBody(exchange, { bytesMax, idleMs });
    },
    write(_operation, answer, exchange, { signal }) {
      const record = exchange.record as RequestRecord;
      record.code = codeOfStatus((answer as Answer).status);
      return send(exchange, answer as Answer, (part) => serving.foreign.work(record, signal, part));
    },
    refuse: (_operation, error, exchange) => refuse(error, exchange),
  };

  return async (request, response) => {
    const { method = "" } = request;
    const operation = operations.get(method === "HEAD" ? "GET" : method);
    if (operation !== undefined) return serve(protocol, { operation, overGrpc: false }, request, response);
    if (operations.size > 0 && method === "OPTIONS")
      return send({ request, response }, { status: 204, headers: { allow } });
    const error =
      operations.size === 0
        ? refusalOf(Code.NotFound, 404, `there is nothing at ${pathOf(request)}`)
        : refusalOf(Code.Unimplemented, 405, `this path takes ${allow}, not ${method}`);
    if (operations.size > 0) error.metadata.set("allow", allow);
    const record = recordOf(request);
    if (record !== undefined) record.code = error.code;
    await refuse(error, { request, response });
  };

  function refuse(error: ConnectError, ends: Ends) {
    const { headers, ...answer } = integration.refuse(error, errorStatus(error, noOverrides), ends.request.headers);
    const set: Record<string, string> = {};
    copyHeaders(error.metadata, set);
    return send(ends, { ...answer, headers: { ...set, ...headers } });
  }
}

/** A request and its response. */
type Ends = Pick<Exchange, "request" | "response">;

/** Does a part of a call's work in its turn. */
type Work = <T>(part: () => Promise<T>) => Promise<T>;

async function send(
  { request, response }: Ends,
  { status, headers = {}, body = "" }: Answer,
  work: Work = (part) => part(),
): Promise<void> {
  const all = { ...headers };
  if (typeof body === "string" || body instanceof Uint8Array) {
    if (status !== 204) return sendWhole(response, status, all, body, clientOf(request));
    writeResponseHead(response, status, all);
    return endResponse(response);
  }
  const pieces = body[Symbol.asyncIterator]();
  const next = () => work(() => pieces.next()).then((step) => (step.done === true ? undefined : step.value));
  try {
    const first = await next();
    writeResponseHead(response, status, all);
    if (request.method === "HEAD" || (await writePieces(response, first, next))) endResponse(response);
  } finally {
    pieces.return?.().catch(() => undefined);
  }
}

type GrpcOperation = ServedOperation & WireRpc;

const protocol = grpc<GrpcOperation, CallTime>(true);

/** Serves an operation as a unary method of gRPC. */
export function grpcRoute(serving: Serving, integration: Integration, operation: Operation): RpcRoute {
  const { receiverBytesMax: bytesMax, streamIdleMs: idleMs } = serving.config;
  // The bytes are the operation's to read.
  const reader = {
    bytesMax,
    limits: { itemsMax: Number.POSITIVE_INFINITY, memoryBytesMax: bytesMax * memoryFactor },
    read: async (bytes: Uint8Array) => bytesOf(bytes) as unknown as Message,
  };
  const rpc: GrpcOperation = {
    operation,
    overGrpc: true,
    idleMs,
    readerOf: () => reader,
    bytesOf: async (answer) => bytesOf((answer as Answer).body as string | Uint8Array | undefined),
    told: integration.refuseRpc,
  };
  const serve = foreignEngine<GrpcOperation>(serving, integration);
  const route: RpcRoute = async (request, response) => {
    if (!isGrpc(request)) return sendBody(response, 415, errorBody(3, "this path takes gRPC alone"));
    return serve(protocol, rpc, request, response);
  };
  return Object.assign(route, { takesGrpc: true });
}

function bytesOf(content: string | Uint8Array = ""): Buffer {
  if (typeof content === "string") return Buffer.from(content);
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
}

/** The routes of all integrations. @throws Error when two of them want one path */
export function integrationRoutes(integrations: readonly Integration[], serving: Serving): ForeignRoutes {
  const routes = new Map<string, RpcRoute>();
  const add = (path: string, route: RpcRoute) => {
    if (routes.has(path)) throw new Error(`two integrations want ${path}`);
    routes.set(path, route);
  };
  for (const integration of integrations) {
    const byPath = new Map<string, Map<string, Operation>>();
    for (const operation of integration.operations) {
      for (const route of operation.routes) {
        if ("grpc" in route) add(`/${route.grpc}`, grpcRoute(serving, integration, operation));
        else byPath.set(route.path, (byPath.get(route.path) ?? new Map()).set(route.method, operation));
      }
    }
    for (const [path, operations] of byPath) add(path, httpRoute(serving, integration, operations));
    if (integration.below !== undefined) add(`${integration.below}/*`, httpRoute(serving, integration, new Map()));
  }
  return routes;
}
