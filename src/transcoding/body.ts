import { isUtf8 } from "node:buffer";
import { Code, ConnectError } from "@connectrpc/connect";
import { bodyReader, type Request } from "../wire/body-reader.ts";
import { invalidValue, messageTooLarge, refusalOf } from "../wire/status.ts";
import { canUnpack } from "../wire/unpack.ts";

/** Bounds of a body. */
export interface HttpBodyLimits {
  /** The largest body, or message of a stream, before and after decompression. */
  bytesMax: number;
  /** Longest silence, ms. */
  idleMs: number;
  /** Notified of bytes that come in; what it throws ends the reading. */
  received(bytes: number): void;
}

const jsonType = /^application\/(?:[\w.!#$&^+-]+\+)?json[ \t]*(?:;(.*))?$/i;
const charset = /^charset[ \t]*=[ \t]*(?:utf-?8|"utf-?8")$/i;

/** Throws 415 unless the content type is JSON (or absent) in UTF-8, and the encoding one that is known. */
export function checkContentType({ headers }: Request): void {
  const type = headers["content-type"];
  if (type !== undefined && type !== "application/json") {
    const known = jsonType.exec(type.trim());
    if (known === null) {
      throw unsupportedType(`the content type must be application/json, not ${JSON.stringify(type.slice(0, 100))}`);
    }
    for (const part of (known[1] ?? "").split(";")) {
      const parameter = part.trim();
      if (/^charset[ \t]*=/i.test(parameter) && !charset.test(parameter))
        throw unsupportedType("the charset must be utf-8");
    }
  }
  checkEncoding(headers["content-encoding"]);
}

/** Throws 415 unless the content encoding is one that is known, or none. */
export function checkEncoding(encoding: string | undefined): void {
  const name = encodingName(encoding);
  if (name === "identity" || canUnpack(name)) return;
  const given = JSON.stringify(encoding?.slice(0, 100));
  throw unsupportedType(`the content encoding must be gzip, br or deflate, not ${given}`);
}

/** The content encoding that a header names; `identity` when it names none. */
export function encodingName(encoding: string | undefined): string {
  return encoding?.trim().toLowerCase() || "identity";
}

function unsupportedType(message: string): ConnectError {
  return refusalOf(Code.InvalidArgument, 415, message);
}

/** Whether the head of a request says that no body follows. */
export function headEndsRequest(request: Request): boolean {
  const { headers } = request;
  const declared = headers["content-length"];
  if (declared !== undefined) return Number(declared) === 0;
  if (headers["transfer-encoding"] !== undefined) return false;
  return request.httpVersionMajor < 2 || request.complete || request.readableEnded;
}

/** Throws code 3 when a request that takes no body has one, or may have; one that turns out empty is fine. */
export async function refuseBody(request: Request, limits: HttpBodyLimits): Promise<void> {
  if (request.headers["content-length"] !== undefined || !(await isEmpty(request, limits))) {
    throw invalidValue("", "this request takes no body");
  }
}

async function isEmpty(request: Request, limits: HttpBodyLimits): Promise<boolean> {
  try {
    await bodyReader(request, { ...limits, bytesMax: 0, tooLarge: () => messageTooLarge(0) }).whole();
    return true;
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.ResourceExhausted) return false;
    throw error;
  }
}

/** The text of a body. Throws code 3 for a byte order mark and for what is not UTF-8. */
export function bodyText(bytes: Buffer): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw invalidValue("", "the body begins with a byte order mark", " (byte 0)");
  }
  if (!isUtf8(bytes)) throw invalidValue("", "the body is not UTF-8", ` (byte ${firstInvalid(bytes)})`);
  return bytes.toString("utf8");
}

const pieceBytes = 4096;

/** Where the first bytes stand that are no UTF-8. */
function firstInvalid(bytes: Buffer): number {
  let at = 0;
  for (let to = pieceBytes; to < bytes.length; to += pieceBytes) {
    // A piece ends before the first byte of a character.
    let end = to;
    while (end > at && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
    if (end <= at || !isUtf8(bytes.subarray(at, end))) break;
    at = end;
  }
  for (; at < bytes.length; at += charBytes(bytes[at] ?? 0)) {
    if (!isUtf8(bytes.subarray(at, at + charBytes(bytes[at] ?? 0)))) return at;
  }
  return at;
}

function charBytes(lead: number): number {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}
