import type { Message } from "@bufbuild/protobuf";
import { errorBody, type RpcRoute, sendBody } from "../protocols/error-body.ts";
import type { WireRpc } from "../protocols/framing.ts";
import { grpc, isGrpc } from "../protocols/grpc.ts";
import type { CallTime } from "../wire/call.ts";
import { memoryFactor } from "../wire/message-limits.ts";
import type { Answer, Integration, Operation } from "./integration.ts";
import { foreignEngine, type ServedOperation, type Serving } from "./serving.ts";

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
  return async (request, response) => {
    if (!isGrpc(request)) return sendBody(response, 415, errorBody(3, "this path takes gRPC alone"));
    return serve(protocol, rpc, request, response);
  };
}

function bytesOf(content: string | Uint8Array = ""): Buffer {
  if (typeof content === "string") return Buffer.from(content);
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
}
