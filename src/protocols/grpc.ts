import type { ConnectError } from "@connectrpc/connect";
import { compressionNegotiate } from "@connectrpc/connect/protocol";
import {
  contentTypeJson,
  contentTypeProto,
  grpcStatusOk,
  headerAcceptEncoding,
  headerEncoding,
  headerGrpcStatus,
  parseContentType,
  setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import { writable } from "../rpc/errors.ts";
import type { Request } from "../wire/body-reader.ts";
import type { Call, CallTime } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import { type Response, sendWithTrailers } from "../wire/send-response.ts";
import { whenDone } from "../wire/when-done.ts";
import { type Exchange, openBody, type Protocol, paceOf } from "./engine.ts";
import {
  compressions,
  envelopeOf,
  envelopeRoom,
  lookAtLength,
  messageInEnvelope,
  readingOf,
  type WireRpc,
} from "./framing.ts";

/** Whether a request is one of gRPC's. */
export function isGrpc({ method, headers }: Pick<Request, "headers" | "method">): boolean {
  return method === "POST" && parseContentType(headers["content-type"] ?? null) !== undefined;
}

/** gRPC: one message in an envelope comes and goes; its status stands in trailers. */
export function grpc<R extends WireRpc, Held extends CallTime = Call>(binary: boolean): Protocol<R, Held> {
  const type = binary ? contentTypeProto : contentTypeJson;
  return {
    name: "grpc",
    read(rpc, exchange, call) {
      const reading = readingOf(rpc, exchange, call, binary, packingOf(exchange));
      const { bytesMax } = reading.reader;
      const body = openBody(exchange, { bytesMax, idleMs: rpc.idleMs }, envelopeRoom);
      return body.whole(lookAtLength(bytesMax)).then((bytes) => messageInEnvelope(bytes, reading));
    },
    write(rpc, answer, exchange, call) {
      const { packing } = exchange;
      const headers: Record<string, string> = { "content-type": type };
      if (packing !== null) headers[headerEncoding] = packing.name;
      const message = whenDone(rpc.bytesOf(answer, binary, paceOf(exchange, call)), (bytes) =>
        envelopeOf(bytes, packing),
      );
      return whenDone(message, (bytes) => respond(exchange.response, headers, call, okTrailers, bytes));
    },
    refuse(rpc, error, { response }, call) {
      respond(response, { "content-type": type }, call, errorTrailers(rpc.told?.(error) ?? error));
    },
  };
}

/** Returns how the message of gRPC or gRPC-Web comes packed, and notes how the answer goes. @throws code 12 for an encoding that is not known */
export function packingOf(exchange: Exchange): string | undefined {
  const { header } = exchange;
  const named = header.get(headerEncoding);
  const packing = compressionNegotiate(compressions, named, header.get(headerAcceptEncoding), headerAcceptEncoding);
  if (packing.error !== undefined) throw packing.error;
  exchange.packing = packing.response;
  return packing.request?.name;
}

function respond(
  response: Response,
  headers: Record<string, string | string[]>,
  call: CallTime | undefined,
  status: NodeJS.Dict<string>,
  message?: Uint8Array,
): void {
  const set = call?.headersSet();
  if (set !== undefined) copyHeaders(set, headers);
  const trailers = call?.trailersSet();
  const all = trailers === undefined ? status : { ...Object.fromEntries(trailers), ...status };
  sendWithTrailers(response, headers, all, message);
}

/** The trailers that say what went wrong. */
const errorTrailers = (error: ConnectError): NodeJS.Dict<string> =>
  Object.fromEntries(setTrailerStatus(new Headers(), writable(error)));

/** The trailers of what succeeded. */
const okTrailers: NodeJS.Dict<string> = { [headerGrpcStatus]: grpcStatusOk };
