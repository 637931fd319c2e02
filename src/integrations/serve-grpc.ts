import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { contentTypeProto } from "@connectrpc/connect/protocol-grpc";
import { unsupported } from "../errors.ts";
import { paced } from "../event-loop.ts";
import { answerHeaders } from "../http/port.ts";
import { errorBody, type RpcRoute, sendBody } from "../protocols/error-body.ts";
import { isEncoding, oneMessage } from "../protocols/framing.ts";
import { errorTrailers, isGrpc, okTrailers } from "../protocols/grpc.ts";
import { type RequestRecord, recordOf, tenantOf } from "../rpc/context.ts";
import { bodyReader, brokenOff, type Request } from "../wire/body-reader.ts";
import { CallTime, timeoutOf, untilAborted, watchClient } from "../wire/call.ts";
import { memoryFactor } from "../wire/message-limits.ts";
import { type Response, sendWithTrailers } from "../wire/send-response.ts";
import { refusalOf } from "../wire/status.ts";
import type { Integration, Operation } from "./integration.ts";
import { admitCall, callOf, leftMs, type Serving } from "./serving.ts";

/** Serves an operation as a unary method of gRPC. */
export function grpcRoute(serving: Serving, integration: Integration, operation: Operation): RpcRoute {
  const { config, foreign, bodies } = serving;
  const { receiverBytesMax: bytesMax, streamIdleMs: idleMs, deadlineMsMax } = config;
  const tooLarge = () => refusalOf(Code.ResourceExhausted, 413, `the message is larger than ${bytesMax} bytes`);
  // The bytes are the operation's to read.
  const reader = {
    bytesMax,
    limits: { itemsMax: Number.POSITIVE_INFINITY, memoryBytesMax: bytesMax * memoryFactor },
    read: async (bytes: Uint8Array) => bytes as unknown as Message,
  };

  async function messageOf(record: RequestRecord, request: Request, time: CallTime): Promise<Buffer> {
    const encoding = String(request.headers["grpc-encoding"] ?? "identity");
    if (!isEncoding(encoding)) {
      const error = unsupported(`the encoding of messages must be gzip or br, not ${encoding}`);
      error.metadata.set("grpc-accept-encoding", "gzip, br");
      throw error;
    }
    const reserve = (bytes: number) => bodies.reserve(record, bytes);
    const body = bodyReader(request, {
      bytesMax: bytesMax + 1024,
      idleMs,
      totalMs: leftMs(time),
      tooLarge,
      received: reserve,
    });
    const pace = paced(() => time.check(), tenantOf(request));
    try {
      const reading = { body, reader, form: { enveloped: true, binary: true }, encoding, reserve, pace };
      const { buffer, byteOffset, byteLength } = (await untilAborted(
        oneMessage(reading),
        time,
      )) as unknown as Uint8Array;
      return Buffer.from(buffer, byteOffset, byteLength);
    } finally {
      body.release();
    }
  }

  return async (request, response) => {
    const record = recordOf(request) as RequestRecord;
    if (!isGrpc(request)) return sendBody(response, 415, errorBody(3, "this path takes gRPC alone"));
    const client = watchClient(response);
    let time: CallTime | undefined;
    let reads = false;
    try {
      const askedMs = timeoutOf({ "grpc-timeout": request.headers["grpc-timeout"] }, deadlineMsMax);
      time = serving.startTime((live) => new CallTime(askedMs, deadlineMsMax, live));
      client.started(time);
      await untilAborted(admitCall(serving, integration, operation, record, request), time);
      reads = true;
      const message = await messageOf(record, request, time);
      reads = false;
      const call = callOf(serving, integration, record, request, time, true);
      const { body = "" } = await foreign.work(record, time.signal, () => operation.serve(call, message));
      record.code = 0;
      const bytes = typeof body === "string" ? Buffer.from(body) : (body as Uint8Array);
      respond(request, response, okTrailers, encodeEnvelope(0, bytes));
    } catch (thrown) {
      if (reads && (await brokenOff(request))) return;
      const error = thrown instanceof ConnectError ? thrown : foreign.fail(thrown, record, time?.signal);
      record.code = error.code;
      respond(request, response, errorTrailers(integration.refuseRpc?.(error) ?? error));
    } finally {
      client.ended();
    }
  };
}

function respond(request: Request, response: Response, status: NodeJS.Dict<string>, message?: Uint8Array): void {
  sendWithTrailers(response, { ...answerHeaders(request), "content-type": contentTypeProto }, status, message);
}
