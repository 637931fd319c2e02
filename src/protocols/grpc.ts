import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
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
import { paced } from "../event-loop.ts";
import { recordOf, tenantOf } from "../rpc/context.ts";
import { internalError, writable } from "../rpc/errors.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import { brokenOff, type Request } from "../wire/body-reader.ts";
import { type Call, type callStarter, timeoutOf, untilAborted, watchClient } from "../wire/call.ts";
import { copyHeaders, requestHeaders } from "../wire/headers.ts";
import { type Response, sendWithTrailers } from "../wire/send-response.ts";
import type { RpcRoute } from "./error-body.ts";
import { oneMessage, type Reading } from "./framing.ts";
import { envelopeOf, messageBytes } from "./message-writer.ts";

/** A unary RPC that is served over gRPC. */
export interface UnaryRpc {
  method: DescMethod;
  /** As `Pipeline.implement` wraps it. */
  call(message: Message, context: HandlerContext): unknown;
  /** The body of a request, with its bounds. */
  requestOf(request: Request): Pick<Reading, "body" | "reader" | "reserve">;
}

interface Options {
  admit: Pipeline["admit"];
  compressions: Compression[];
  deadlineMsMax: number;
  /** Notified of unexpected errors; the answer says "internal error" alone. */
  report(error: unknown, request: Request): void;
  startCall: ReturnType<typeof callStarter>;
}

/** Whether a request is one of gRPC's. */
export function isGrpc({ method, headers }: Request): boolean {
  return method === "POST" && parseContentType(headers["content-type"] ?? null) !== undefined;
}

/**
 * Answers unary calls over gRPC. A message comes and a message goes, whole: the streams within streams that Connect's
 * handlers make of them take longer than the call itself (docs/decisions/0021).
 */
export function unaryGrpc({ admit, compressions, deadlineMsMax, report, startCall }: Options) {
  return (rpc: UnaryRpc): RpcRoute => {
    const { method } = rpc;

    return async (request, response) => {
      const { headers } = request;
      const binary = parseContentType(headers["content-type"] ?? null)?.binary ?? true;
      const form = binary ? contentTypeProto : contentTypeJson;
      const header = requestHeaders(headers);
      const given = rpc.requestOf(request);
      let call: Call | undefined;
      let reads = false;
      const client = watchClient(response);
      try {
        const values = await admit(method, header, request);
        const accepted = header.get(headerAcceptEncoding);
        const packing = compressionNegotiate(compressions, header.get(headerEncoding), accepted, headerAcceptEncoding);
        if (packing.error !== undefined) throw packing.error;
        const timeoutMs = timeoutOf({ "grpc-timeout": headers["grpc-timeout"] }, deadlineMsMax);
        const { method: httpMethod = "", url = "" } = request;
        call = startCall({ method, protocol: "grpc", httpMethod, url, header, values, timeoutMs, bounded: true });
        client.started(call);
        reads = true;
        const encoding = packing.request === null ? null : packing.request.name;
        const tenantId = tenantOf(request);
        const reading = { ...given, form: { enveloped: true, binary }, encoding, pace: paced(client.check, tenantId) };
        const sent = await untilAborted(oneMessage(reading), call);
        reads = false;
        const answer = create(method.output, (await untilAborted(rpc.call(sent, call), call)) as Message);
        const pace = paced(client.check, tenantId);
        const data = await messageBytes(method.output, answer, binary, pace);
        const packed = packing.response === null ? undefined : { [headerEncoding]: packing.response.name };
        const message = await envelopeOf(data, packing.response);
        respond(response, form, packed, call, message, okTrailers);
      } catch (thrown) {
        if (reads && (await brokenOff(request))) return;
        const unforeseen = !(thrown instanceof ConnectError);
        if (unforeseen) report(thrown, request);
        const error = unforeseen ? internalError() : thrown;
        const record = recordOf(request);
        if (record !== undefined) record.code = unforeseen ? error.code : (record.code ?? error.code);
        respond(response, form, undefined, call, undefined, errorTrailers(error));
      } finally {
        client.ended();
        given.body.release();
      }
    };
  };
}

function respond(
  response: Response,
  form: string,
  packed: Record<string, string> | undefined,
  call: Call | undefined,
  message: Uint8Array | undefined,
  status: NodeJS.Dict<string>,
): void {
  const headers: Record<string, string | string[]> = { "content-type": form, ...packed };
  const set = call?.headersSet();
  if (set !== undefined) copyHeaders(set, headers);
  const trailers = call?.trailersSet();
  const all = trailers === undefined ? status : { ...Object.fromEntries(trailers), ...status };
  sendWithTrailers(response, headers, all, message);
}

/** The trailers that say what went wrong. */
export const errorTrailers = (error: ConnectError): NodeJS.Dict<string> =>
  Object.fromEntries(setTrailerStatus(new Headers(), writable(error)));

/** The trailers of what succeeded. */
export const okTrailers: NodeJS.Dict<string> = { [headerGrpcStatus]: grpcStatusOk };
