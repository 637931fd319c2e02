import type { ServerResponse } from "node:http";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import {
  type Compression,
  compressionNegotiate,
  createMethodSerializationLookup,
  encodeEnvelope,
  envelopeCompress,
  envelopeDecompress,
} from "@connectrpc/connect/protocol";
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
import { exhausted } from "../errors.ts";
import { recordOf } from "../rpc/context.ts";
import { brokenMessage, internalError, notOneMessage, unreadMessage, writable } from "../rpc/errors.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import { type Call, callStarter, timeoutOf, watchClient } from "../wire/call.ts";
import { copyHeaders, requestHeaders } from "../wire/headers.ts";
import { brokenOff, type Pieces, type Request } from "../wire/pieces.ts";
import type { Response, RpcRoute } from "./answer.ts";

const headBytes = 5; // of a message: its flags and its length
const compressBytesMin = 1024; // as Connect's handlers

/** A unary RPC that is served over gRPC. */
export interface UnaryRpc {
  method: DescMethod;
  /** As `Pipeline.implement` wraps it. */
  call(message: Message, context: HandlerContext): unknown;
  /** Largest message, bytes, on the wire and again after decompression. */
  messageBytesMax: number;
  /** The body of a request, with its bounds. */
  bodyOf(request: Request): Pieces;
  /** The words of a message that cannot be read may quote a secret. */
  discreet: boolean;
}

interface Options {
  admit: Pipeline["admit"];
  compressions: Compression[];
  deadlineMsMax: number;
  /** Told of errors that nobody foresaw; the answer says "internal error" alone. */
  report(error: unknown, request: Request): void;
  /** Aborts when running calls must end. */
  stopping: AbortSignal;
}

type Forms = ReturnType<typeof createMethodSerializationLookup>;

/** Whether a request is one of gRPC's. */
export function isGrpc({ method, headers }: Request): boolean {
  return method === "POST" && parseContentType(headers["content-type"] ?? null) !== undefined;
}

/**
 * Answers unary calls over gRPC. A message comes and a message goes, whole: the streams within streams that Connect's
 * handlers make of them take longer than the call itself (docs/decisions/0021).
 */
export function unaryGrpc({ admit, compressions, deadlineMsMax, report, stopping }: Options) {
  const startCall = callStarter(deadlineMsMax, stopping);

  return (rpc: UnaryRpc): RpcRoute => {
    const { method, messageBytesMax } = rpc;
    const limits = { readMaxBytes: messageBytesMax, writeMaxBytes: 0xffffffff, compressMinBytes: compressBytesMin };
    const forms = createMethodSerializationLookup(method, undefined, undefined, limits);

    return async (request, response) => {
      const { headers } = request;
      const binary = parseContentType(headers["content-type"] ?? null)?.binary ?? true;
      const form = binary ? contentTypeProto : contentTypeJson;
      const header = requestHeaders(headers);
      const body = rpc.bodyOf(request);
      let call: Call | undefined;
      let at: "head" | "message" | "call" | "answer" = "head";
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
        at = "message";
        const message = await call.untilAborted(messageOf(body, packing.request, messageBytesMax, forms, binary));
        at = "call";
        const answer = create(method.output, (await call.untilAborted(rpc.call(message, call))) as Message);
        at = "answer";
        const plain = { flags: 0, data: forms.getO(binary).serialize(answer) };
        const { flags, data } = await envelopeCompress(plain, packing.response, compressBytesMin);
        const packed = packing.response === null ? undefined : { [headerEncoding]: packing.response.name };
        respond(response, form, packed, call, encodeEnvelope(flags, data), { [headerGrpcStatus]: grpcStatusOk });
      } catch (thrown) {
        if (at === "message" && (await brokenOff(request))) return;
        const unforeseen = at === "answer" || !(thrown instanceof ConnectError);
        if (unforeseen) report(thrown, request);
        let error = unforeseen ? internalError() : thrown;
        if (at === "message" && !unforeseen) error = unreadMessage(error, rpc.discreet && !binary);
        const record = recordOf(request);
        if (record !== undefined) record.code = unforeseen ? error.code : (record.code ?? error.code);
        respond(response, form, undefined, call, undefined, plainly(setTrailerStatus(new Headers(), writable(error))));
      } finally {
        client.ended();
        body.release();
      }
    };
  };
}

/** Reads the one message of a call. @throws code 3, 8 or 12 when there is none, more than one, or it cannot be read. */
async function messageOf(
  body: Pieces,
  compression: Compression | null,
  bytesMax: number,
  forms: Forms,
  binary: boolean,
): Promise<Message> {
  const bytes = await wholeBody(body, bytesMax);
  if (bytes.byteLength === 0) throw notOneMessage("no message");
  const end = bytes.byteLength < headBytes ? headBytes : headBytes + bytes.readUInt32BE(1);
  if (bytes.byteLength < end) throw brokenMessage();
  if (bytes.byteLength > end) throw notOneMessage("more than one message");
  const envelope = { flags: bytes[0] as number, data: bytes.subarray(headBytes) };
  const { data } = await envelopeDecompress(envelope, compression, bytesMax);
  return forms.getI(binary).parse(data) as Message;
}

/** What a message says of its length is looked at as soon as it is there. */
async function wholeBody(body: Pieces, bytesMax: number): Promise<Buffer> {
  const pieces = body[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let bytes = 0;
  let announced: number | undefined;
  for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
    read.push(next.value);
    bytes += next.value.byteLength;
    if (announced !== undefined || bytes < headBytes) continue;
    announced = joined(read).readUInt32BE(1);
    if (announced > bytesMax) throw exhausted(`the message is larger than ${bytesMax} bytes`);
  }
  return joined(read);
}

function joined(pieces: readonly Uint8Array[]): Buffer {
  const [first = Buffer.alloc(0)] = pieces;
  return pieces.length > 1 ? Buffer.concat(pieces) : Buffer.from(first.buffer, first.byteOffset, first.byteLength);
}

function respond(
  response: Response,
  form: string,
  packed: Record<string, string> | undefined,
  call: Call | undefined,
  message: Uint8Array | undefined,
  status: NodeJS.Dict<string>,
): void {
  if (response.destroyed) return;
  const headers: Record<string, string | string[]> = { "content-type": form, ...packed };
  const set = call?.headersSet();
  if (set !== undefined) copyHeaders(set, headers);
  const trailers = call?.trailersSet();
  const target = response as ServerResponse; // HTTP/2's compatibility response has the same methods
  target.writeHead(200, headers);
  target.addTrailers(trailers === undefined ? status : { ...plainly(trailers), ...status });
  target.end(message);
}

function plainly(headers: Headers): NodeJS.Dict<string> {
  return Object.fromEntries(headers);
}
