import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { headerEncoding, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { writable } from "../rpc/errors.ts";
import type { Call } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import { endResponse, type Response, writeResponseHead } from "../wire/send-response.ts";
import { invalidValue } from "../wire/status.ts";
import { openBody, type Protocol, paceOf } from "./engine.ts";
import { envelopeOf, envelopeRoom, lookAtLength, messageInEnvelope, readingOf, type WireRpc } from "./framing.ts";
import { packingOf } from "./grpc.ts";

/** gRPC-Web: gRPC whose status is a last frame of the body. `text`: the body is base64, as browsers' oldest requests need it. */
export function grpcWeb<R extends WireRpc>(binary: boolean, text: boolean): Protocol<R> {
  const type = `application/grpc-web${text ? "-text" : ""}+${binary ? "proto" : "json"}`;

  function respond(
    response: Response,
    headers: Record<string, string | string[]>,
    call: Call | undefined,
    error: ConnectError | undefined,
    message: Uint8Array = new Uint8Array(),
  ) {
    if (response.destroyed) return;
    const set = call?.headersSet();
    if (set !== undefined) copyHeaders(set, headers);
    const trailers = setTrailerStatus(new Headers(call?.trailersSet()), error && writable(error));
    const body = Buffer.concat([message, encodeEnvelope(trailerFlag, trailerSerialize(trailers))]);
    writeResponseHead(response, 200, { ...headers, "content-type": type });
    endResponse(response, text ? body.toString("base64") : body);
  }

  return {
    name: "grpc-web",
    async read(rpc, exchange, call) {
      const reading = readingOf(rpc, exchange, call, binary, packingOf(exchange));
      const { bytesMax } = reading.reader;
      // Four characters hold three bytes.
      const room = envelopeRoom + (text ? Math.ceil(bytesMax / 3) : 0);
      const body = openBody(exchange, { bytesMax, idleMs: rpc.idleMs }, room);
      return messageInEnvelope(
        text ? bytesOfText(await body.whole(), exchange.reserve) : await body.whole(lookAtLength(bytesMax)),
        reading,
      );
    },
    async write(rpc, answer, exchange, call) {
      const { packing } = exchange;
      const message = await envelopeOf(await rpc.bytesOf(answer, binary, paceOf(exchange, call)), packing);
      const packed: Record<string, string> = packing === null ? {} : { [headerEncoding]: packing.name };
      respond(exchange.response, packed, call, undefined, message);
    },
    refuse(_rpc, error, { response }, call) {
      respond(response, {}, call, error);
    },
  };
}

const alphabet = /^[A-Za-z0-9+/]*={0,2}$/;

/** Reads a body in base64, whose pieces may each have been padded. @throws code 3 for what is none */
export function bytesOfText(body: Buffer, reserve: (bytes: number) => void): Buffer {
  const room = Math.ceil(body.length / 4) * 3;
  reserve(room);
  const bytes = Buffer.allocUnsafe(room);
  let length = 0;
  let from = 0;
  for (let pieces = 0; from < body.length; pieces += 1) {
    const padding = body.indexOf("=", from);
    let end = padding < 0 ? body.length : padding + 1;
    if (body[end] === paddingByte && padding >= 0) end += 1;
    const piece = body.toString("latin1", from, end);
    if (pieces === piecesMax || piece.length % 4 !== 0 || !alphabet.test(piece))
      throw invalidValue("", "the body is not base64, as its content type says");
    length += bytes.write(piece, length, "base64");
    from = end;
  }
  return bytes.subarray(0, length);
}

const paddingByte = "=".charCodeAt(0);
/** Clients send one: 22 MB of two characters and their padding each would be read for a second. */
const piecesMax = 1000;
