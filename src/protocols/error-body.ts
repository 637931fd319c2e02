import type { OutgoingHttpHeaders } from "node:http";
import { createRegistry } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { infoOfCode, reasoned } from "../error-reasons.ts";
import { errorJson, errorText } from "../transcoding/error-text.ts";
import { jsonWriter } from "../transcoding/json/write-json.ts";
import type { Request } from "../wire/body-reader.ts";
import { type Response, sendWhole } from "../wire/send-response.ts";

/** Serves an RPC at one path. The answer is written when the promise resolves; it rejects only with unexpected errors. */
export interface RpcRoute {
  (request: Request, response: Response): Promise<void>;
  /** Whether it answers unary calls of gRPC. */
  readonly takesGrpc?: boolean | undefined;
}

/** Returns the path of a request, without its query. */
export function pathOf({ url = "" }: Pick<Request, "url">): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

// Details of our own errors bring their types along.
const registry = createRegistry();
const writer = jsonWriter(registry);

/** An error as /v1 words it, wherever no protocol prescribes another form. */
export function connectErrorBody(error: ConnectError): Buffer {
  return Buffer.from(`${errorText(reasoned(error), registry, writer)}\n`);
}

/** The same for an error that has no other detail than its reason. */
export function errorBody(code: number, message: string, reason?: ErrorReason): Buffer {
  return Buffer.from(`${errorJson(code, message, [infoOfCode(code, reason)])}\n`);
}

/** Answers with an error in our form, whole and at once. */
export function sendBody(response: Response, status: number, body: Buffer, headers: OutgoingHttpHeaders = {}): void {
  if (response.headersSent || response.destroyed) return;
  const whole = { method: undefined, acceptEncoding: undefined };
  void sendWhole(response, status, { ...headers, "content-type": "application/json" }, body, whole);
}
