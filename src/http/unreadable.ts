import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

const trailerFlag = 0x80;

/**
 * The answer to a message that could not be decoded, with code 3 (invalid argument) as on every protocol: Connect's
 * handlers say 13 (internal) when it was binary. `first` is the answer's first chunk; everything else passes as it is.
 */
export function answerUnreadable(
  answer: UniversalServerResponse,
  first: Uint8Array | undefined,
): [UniversalServerResponse, Uint8Array | undefined] {
  if (answer.trailer?.get("grpc-status") === "13") answer.trailer.set("grpc-status", "3");
  if (first === undefined) return [answer, first];
  if (first[0] === trailerFlag) return [answer, grpcWebTrailer(Buffer.from(first.subarray(5)).toString("latin1"))];
  if (answer.status !== 500) return [answer, first];
  const body = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(first).toString()), code: "invalid_argument" }));
  answer.header?.set("content-length", String(body.byteLength));
  return [{ ...answer, status: 400 }, body];
}

function grpcWebTrailer(text: string) {
  const fields = Buffer.from(text.replace(/^grpc-status: *13\b/im, "grpc-status: 3"), "latin1");
  const head = Buffer.alloc(5);
  head.writeUInt8(trailerFlag, 0);
  head.writeUInt32BE(fields.byteLength, 1);
  return Buffer.concat([head, fields]);
}
