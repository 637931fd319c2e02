import type { DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { Compression, UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip, universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import { exhausted } from "../errors.ts";
import type { Bodies } from "../rpc/bodies.ts";
import { recordOf } from "../rpc/context.ts";
import { boundDeadline } from "../rpc/deadline.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import { type Pieces, pieces, type Request } from "../wire/pieces.ts";
import { holdsRedacted } from "../wire/redacted.ts";
import { httpStatus } from "../wire/status.ts";
import { unpack } from "../wire/unpack.ts";
import { connectErrorBody, errorBody, type Response, type RpcRoute, sendBody } from "./answer.ts";
import { isGrpc, type UnaryRpc, unaryGrpc } from "./grpc.ts";
import { writeAnswer } from "./write.ts";

/** A service and its RPCs, wrapped by the pipeline. */
export interface ServedService {
  service: DescService;
  implementation: ServiceImpl<DescService>;
}

/** Bounds of what an RPC may send. */
export interface RpcLimits {
  /** Largest message of a service, bytes, on the wire and again after decompression. */
  messageBytesMax(service: DescService): number;
  /** Largest total of a client stream, bytes. */
  streamBytesMax: number;
  streamIdleMs: number;
  deadlineMsMax: number;
  /** Counts what is held of all bodies; without it nobody does. */
  bodies?: Bodies | undefined;
}

const envelopeHeadBytes = 5; // its flags and its length

interface Options {
  services: readonly ServedService[];
  admit: Pipeline["admit"];
  limits: RpcLimits;
  /** Told of errors that nobody foresaw. */
  report(error: unknown, request: Request): void;
  /** Aborts when running calls must end. */
  stopping: AbortSignal;
}

const denialKey = createContextKey<ConnectError | undefined>(undefined);

/**
 * The routes of all RPCs by path (`/belfry.events.v1.EventQueryService/GetEvent`). Each call is admitted by its headers;
 * a denied one is still answered in its own protocol, by a gate that Connect's handlers ask before they read the body.
 */
export function rpcRoutes({ services, admit, limits, report, stopping }: Options): Map<string, RpcRoute> {
  const compressions = [compressionGzip, compressionBrotli].map(bombProof);
  const grpc = unaryGrpc({ admit, compressions, deadlineMsMax: limits.deadlineMsMax, report, stopping });
  const router = createConnectRouter({
    acceptCompression: compressions,
    shutdownSignal: stopping,
    requestGate: ({ values }) => {
      const denial = values.get(denialKey);
      if (denial !== undefined) throw denial;
    },
  });
  for (const { service, implementation } of services) {
    router.service(service, implementation, { readMaxBytes: limits.messageBytesMax(service) });
  }
  const implementations = new Map(services.map(({ service, implementation }) => [service, implementation]));
  return new Map(
    router.handlers.map((handler) => {
      const functions = implementations.get(handler.service) as Record<string, UnaryRpc["call"]>;
      const call = functions[handler.method.localName] as UnaryRpc["call"];
      return [handler.requestPath, rpcRoute(handler, admit, limits, (rpc) => grpc({ call, ...rpc }))];
    }),
  );
}

function rpcRoute(
  handler: UniversalHandler,
  admit: Pipeline["admit"],
  limits: RpcLimits,
  serveGrpc: (rpc: Omit<UnaryRpc, "call">) => RpcRoute,
): RpcRoute {
  const allow = [...handler.allowedMethods, "OPTIONS"].join(", ");
  const unary = handler.method.methodKind === "unary";
  const secretive = holdsRedacted(handler.method.input);
  // A unary message is bounded by its handler; what is added is room for its envelope.
  const bytesMax = unary ? limits.messageBytesMax(handler.service) + 1024 : limits.streamBytesMax;
  const bodyLimits = {
    bytesMax,
    idleMs: limits.streamIdleMs,
    ...(unary && { totalMs: limits.deadlineMsMax }),
    tooLarge: () => exhausted(`the request is larger than ${bytesMax} bytes`),
  };

  function bodyOf(request: Request): Pieces {
    const record = recordOf(request);
    const received = record && limits.bodies && ((bytes: number) => limits.bodies?.came(record, bytes));
    return pieces(request, { ...bodyLimits, ...(received && { received }) });
  }
  const { method, service } = handler;
  const messageBytesMax = limits.messageBytesMax(service);
  const answerGrpc = unary ? serveGrpc({ method, messageBytesMax, bodyOf, discreet: secretive }) : undefined;

  async function admitted(
    call: UniversalServerRequest,
    request: Request,
  ): Promise<{ values: ContextValues; denial?: ConnectError }> {
    try {
      return { values: await admit(handler.method, call.header, request) };
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return { values: createContextValues().set(denialKey, error), denial: error };
    }
  }

  return async (request, response) => {
    if (!handler.allowedMethods.includes(request.method ?? "")) return refuseMethod(request, response, allow);
    if (answerGrpc !== undefined && isGrpc(request)) return answerGrpc(request, response);
    const body = bodyOf(request);
    try {
      const call = universalCall(request, response, body);
      if (call === undefined) return sendBody(response, 400, errorBody(3, "the Host header or the path is malformed"));
      const { values, denial } = await admitted(call, request);
      const type = call.header.get("content-type") ?? "";
      if (call.method === "POST" && !handler.supportedContentType(type)) {
        if (denial !== undefined) return sendDenial(response, denial);
        return sendBody(response, 415, errorBody(3, `the content type ${JSON.stringify(type)} is none of this RPC's`));
      }
      const enveloped = type.startsWith("application/grpc");
      const begunMs = performance.now();
      const ahead =
        unary && call.method === "POST" && denial === undefined
          ? await readAhead(body, request, enveloped, bytesMax)
          : body;
      if (ahead === undefined) return;
      if (unary) boundDeadline(call.header, enveloped, limits.deadlineMsMax, performance.now() - begunMs);
      const answer = await handler({ ...call, body: ahead, contextValues: values });
      await writeAnswer(request, response, answer, call.signal, secretive && type.includes("json"));
    } finally {
      body.release();
    }
  };
}

/**
 * Reads a unary request before its protocol sees it: for a client that breaks off, the handler's layers would each fail in
 * turn, which takes many times as long as a good call. Undefined: the client has gone.
 */
async function readAhead(body: Pieces, request: Request, enveloped: boolean, bytesMax: number) {
  // What will be refused for its length is read by who refuses it.
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) return body;
  const rest = body[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let bytes = 0;
  let length = enveloped ? undefined : 0;
  try {
    for (let piece = await rest.next(); !piece.done; piece = await rest.next()) {
      read.push(piece.value);
      bytes += piece.value.byteLength;
      if (length !== undefined || bytes < envelopeHeadBytes) continue;
      length = Buffer.concat(read).readUInt32BE(1);
      if (length > bytesMax) return joined(read, () => rest.next());
    }
  } catch (error) {
    if (request.aborted) return undefined;
    return joined(read, () => Promise.reject(error));
  }
  return joined(read, async () => ({ done: true, value: undefined }));
}

/** What has been read as one piece, since protocols look through all pieces again for each, and then what comes. */
function joined(
  read: readonly Uint8Array[],
  next: () => Promise<IteratorResult<Uint8Array, undefined>>,
): AsyncIterable<Uint8Array> {
  let first = read.length > 1 ? Buffer.concat(read) : read[0];
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const value = first;
        first = undefined;
        return value === undefined ? next() : { done: false, value };
      },
    }),
  };
}

function bombProof(compression: Compression): Compression {
  const outgrew = (error: unknown) => error instanceof ConnectError && error.code === Code.ResourceExhausted;
  return {
    ...compression,
    decompress: (bytes, bytesMax) =>
      unpack(
        bytes,
        bytesMax,
        (most) => compression.decompress(bytes, most),
        () => exhausted(`the message is larger than ${bytesMax} bytes when decompressed`),
        outgrew,
      ),
  };
}

function universalCall(request: Request, response: Response, body: Pieces): UniversalServerRequest | undefined {
  try {
    return { ...universalRequestFromNodeRequest(request, response as never, undefined, undefined), body };
  } catch {
    return undefined;
  }
}

function refuseMethod(request: Request, response: Response, allow: string) {
  if (request.method === "OPTIONS") {
    (response as import("node:http").ServerResponse).writeHead(204, { allow }).end();
    return;
  }
  sendBody(response, 501, errorBody(12, `this path takes ${allow}, not ${request.method}`), { allow });
}

function sendDenial(response: Response, denial: ConnectError) {
  const headers: Record<string, string> = {};
  for (const [name, value] of denial.metadata) headers[name] = value;
  sendBody(response, httpStatus(denial.code), connectErrorBody(denial), headers);
}
