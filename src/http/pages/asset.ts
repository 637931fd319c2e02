import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { chooseEncoding, compress, type Encoding } from "../../wire/send-response.ts";

/** A file as it is answered: its bytes, compressed once for each encoding that was asked for. */
export interface Asset {
  readonly bytes: Buffer;
  /** With its charset. */
  readonly type: string;
  /** Of the content: another content has another one. */
  readonly hash: string;
  /** Headers of its own, such as how long it may be kept. */
  readonly headers: Readonly<Record<string, string>>;
  /** The compressed forms, as far as they were wanted. */
  readonly packed: Map<Encoding, Promise<Buffer>>;
}

const types: Readonly<Record<string, string>> = {
  crt: "application/x-x509-ca-cert",
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  svg: "image/svg+xml",
};

/** Sent with every asset: no MIME sniffing, no Referer, and it may be kept by who asks each time whether it has changed. */
const common = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-cache" };

/** An asset of this content; its type follows from the ending of the name. */
export function asset(name: string, content: string | Buffer, headers: Record<string, string> = {}): Asset {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return {
    bytes,
    type: types[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    hash: createHash("sha256").update(bytes).digest("hex").slice(0, 16),
    headers: { ...common, ...headers },
    packed: new Map(),
  };
}

const compressBytesMin = 1024;
// Once and kept, so at more than the usual effort: a tenth of a second for the largest.
const effort = { br: 9, gzip: 9, deflate: 9 };

/** Answers with an asset, compressed as the request accepts, or with 304 when the client has it already. */
export async function answerAsset(request: FastifyRequest, reply: FastifyReply, file: Asset): Promise<FastifyReply> {
  const { bytes, type, hash, headers, packed } = file;
  const compressible = bytes.byteLength > compressBytesMin;
  const accepted = request.headers["accept-encoding"];
  const encoding = compressible && accepted !== undefined ? chooseEncoding(String(accepted)) : undefined;
  const etag = encoding === undefined ? `"${hash}"` : `"${hash}-${encoding}"`;
  const vary = [reply.getHeader("vary"), headers.vary, compressible ? "accept-encoding" : undefined];
  reply.headers({ ...headers, etag });
  if (vary.some((name) => name !== undefined)) reply.header("vary", vary.filter(Boolean).join(", "));
  if (matches(request.headers["if-none-match"], etag)) return reply.code(304).send();
  if (encoding === undefined) return reply.type(type).send(bytes);
  const making = packed.get(encoding) ?? compress(encoding, bytes, effort[encoding]);
  packed.set(encoding, making);
  return reply
    .type(type)
    .header("content-encoding", encoding)
    .send(await making);
}

/** Whether the client names this entity tag among those that it has (RFC 9110, 13.1.2). */
function matches(sent: string | undefined, etag: string): boolean {
  if (sent === undefined) return false;
  return sent.split(",").some((name) => ["*", etag].includes(name.trim().replace(/^W\//, "")));
}
