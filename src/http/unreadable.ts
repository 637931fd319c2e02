import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { undecodable } from "../rpc/errors.ts";

const trailerFlag = 0x80;

/**
 * The answer to a message that could not be decoded, with code 3 (invalid argument) as on every protocol: Connect's
 * handlers say 13 (internal) when it was binary. `first` is the answer's first chunk; everything else passes as it is.
 * `discreet` leaves out their words, which quote what they found.
 */
export function answerUnreadable(
  answer: UniversalServerResponse,
  first: Uint8Array | undefined,
  discreet: boolean,
): [UniversalServerResponse, Uint8Array | undefined] {
  const { trailer } = answer;
  const status = trailer?.get("grpc-status");
  if (status === "13") trailer?.set("grpc-status", "3");
  if (discreet && (status === "13" || status === "3")) {
    trailer?.set("grpc-message", undecodable);
    trailer?.delete("grpc-status-details-bin");
  }
  if (first === undefined) return [answer, first];
  if (first[0] === trailerFlag) {
    return [answer, grpcWebTrailer(Buffer.from(first.subarray(5)).toString("latin1"), discreet)];
  }
  if (answer.status !== 500 && !(discreet && answer.status === 400)) return [answer, first];
  const told = JSON.parse(Buffer.from(first).toString());
  const body = Buffer.from(
    JSON.stringify({ ...told, code: "invalid_argument", ...(discreet && { message: undecodable }) }),
  );
  answer.header?.set("content-length", String(body.byteLength));
  return [{ ...answer, status: 400 }, body];
}

function grpcWebTrailer(text: string, discreet: boolean) {
  const coded = text.replace(/^grpc-status: *13\b/im, "grpc-status: 3");
  const words = /^grpc-message:.*$/im;
  const told =
    discreet && /^grpc-status: *3\b/im.test(coded) ? coded.replace(words, `grpc-message: ${undecodable}`) : coded;
  const fields = Buffer.from(told, "latin1");
  const head = Buffer.alloc(5);
  head.writeUInt8(trailerFlag, 0);
  head.writeUInt32BE(fields.byteLength, 1);
  return Buffer.concat([head, fields]);
}
