import type { IncomingHttpHeaders } from "node:http";

const hopByHop = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers of a request as handlers see them: pseudo headers and hop-by-hop ones are left out. */
export function requestHeaders(incoming: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const name in incoming) {
    const value = incoming[name];
    if (value === undefined || hopByHop.has(name) || name.charCodeAt(0) === 58) continue;
    if (typeof value === "string") headers.set(name, value);
    else for (const item of value) headers.append(name, item);
  }
  return headers;
}

// What the transcoder itself says of its answers.
const ours = new Set(["content-length", "content-type", "content-encoding", "date", ...hopByHop]);

/** Copies headers that a handler or an error set onto an answer. */
export function copyHeaders(from: Headers, to: Record<string, string | string[]>): void {
  for (const [name, value] of from) if (!ours.has(name) && name !== "set-cookie") to[name] = value;
  const cookies = from.getSetCookie();
  if (cookies.length > 0) to["set-cookie"] = cookies;
}
