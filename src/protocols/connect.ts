import type { ConnectError } from "@connectrpc/connect";
import { compressionNegotiate } from "@connectrpc/connect/protocol";
import { contentTypeUnaryJson, contentTypeUnaryProto, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { writable } from "../rpc/errors.ts";
import type { Call } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import { sendWhole } from "../wire/send-response.ts";
import { httpStatus } from "../wire/status.ts";
import { clientOf, type Exchange, openBody, type Protocol, paceOf } from "./engine.ts";
import { compressions, messageOf, readingOf, type WireRpc } from "./framing.ts";

/** Connect's unary calls: the body is the message, or its JSON, and an error is a status with JSON. `inAddress`: a GET. */
export function connectUnary<R extends WireRpc>(binary: boolean, inAddress: boolean): Protocol<R> {
  const type = binary ? contentTypeUnaryProto : contentTypeUnaryJson;
  return {
    name: "connect",
    async read(rpc, exchange, call) {
      const query = inAddress ? queryOf(exchange) : undefined;
      const named = query === undefined ? exchange.header.get("content-encoding") : query.get("compression");
      const reading = readingOf(rpc, exchange, call, binary, encodingOf(named));
      if (query !== undefined) return messageOf(inQuery(query), true, reading);
      const { bytesMax } = reading.reader;
      return messageOf(await openBody(exchange, { bytesMax, idleMs: rpc.idleMs }).whole(), true, reading);
    },
    async write(rpc, answer, exchange, call) {
      const bytes = await rpc.bytesOf(answer, binary, paceOf(exchange, call));
      await respond(exchange, call, 200, type, bytes);
    },
    refuse(_rpc, error, exchange, call) {
      const told = writable(error);
      return respond(
        exchange,
        call,
        httpStatus(told.code),
        contentTypeUnaryJson,
        errorToJsonBytes(told, undefined),
        told,
      );
    },
  };
}

/** Whether a GET's message is JSON or binary; undefined when its address does not say. */
export function codingOf(url: string): "json" | "proto" | undefined {
  const coding = /[?&]encoding=(json|proto)(?:&|$)/.exec(url)?.[1];
  return coding as "json" | "proto" | undefined;
}

const queryOf = ({ request: { url = "" } }: Exchange) => new URLSearchParams(url.slice(url.indexOf("?") + 1));

const inQuery = (query: URLSearchParams): Buffer =>
  Buffer.from(query.get("message") ?? "", query.get("base64") === "1" ? "base64url" : "utf8");

/** @throws code 12 for an encoding that is not known */
function encodingOf(named: string | null): string | undefined {
  const packing = compressionNegotiate(compressions, named, null, "accept-encoding");
  if (packing.error !== undefined) throw packing.error;
  return packing.request?.name;
}

function respond(
  { request, response }: Exchange,
  call: Call | undefined,
  status: number,
  type: string,
  body: Uint8Array,
  error?: ConnectError,
): void | Promise<void> {
  const headers: Record<string, string | string[]> = { "content-type": type };
  const set = call?.headersSet();
  if (set !== undefined) copyHeaders(set, headers);
  for (const [name, value] of call?.trailersSet() ?? []) headers[`trailer-${name}`] = value;
  if (error !== undefined) copyHeaders(error.metadata, headers);
  return sendWhole(response, status, headers, body, clientOf(request));
}
