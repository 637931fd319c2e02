import type { LoadRequest } from "./load.ts";

/**
 * The header blocks of a connection (HPACK, RFC 7541): the first puts every header into the server's table, the further
 * ones name them by number, as real clients do.
 */
export function headerBlocks(request: LoadRequest, authority: string): { next(): Buffer } {
  const headers = {
    ":method": request.method,
    ":scheme": "http",
    ":path": request.path,
    ":authority": authority,
    ...request.headers,
  };
  const entries = Object.entries(headers);
  const first = Buffer.concat(
    entries.map(([name, value]) => Buffer.concat([Buffer.from([0x40]), text(name), text(value)])),
  );
  // The table's own entries follow the 61 static ones, the latest first.
  const further = Buffer.from(entries.map((_, index) => 0x80 | (61 + entries.length - index)));
  let block = first;
  return {
    next() {
      const now = block;
      block = further;
      return now;
    },
  };
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.byteLength > 126) throw new Error(`too long for this encoder: ${value}`);
  return Buffer.concat([Buffer.from([bytes.byteLength]), bytes]);
}
