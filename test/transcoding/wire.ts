import { request } from "node:http";

/** What came back over the wire, whole. */
export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  text: string;
}

/** Sends a request whose target goes out as it stands, which `fetch` would tidy up. */
export function send(
  port: number,
  line: string,
  headers: Record<string, string> = {},
  body?: string | Uint8Array,
): Promise<Reply> {
  const [method, path] = line.split(" ");
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const outgoing = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, async (response) => {
    try {
      const bytes = Buffer.concat(await response.toArray());
      resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text: bytes.toString() });
    } catch (error) {
      reject(error);
    }
  });
  outgoing.on("error", reject);
  if (body === undefined) outgoing.end();
  else {
    // Without a length Node sends chunks.
    if (headers["transfer-encoding"] === undefined) outgoing.setHeader("content-length", Buffer.byteLength(body));
    outgoing.end(body);
  }
  return promise;
}
