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

/** What a name of a header consists of; Headers throws for others. */
const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

interface Lazy extends Headers {
  incoming: IncomingHttpHeaders;
  /** What `Connection` names beyond those. */
  named: ReadonlySet<string> | undefined;
  real: Headers | undefined;
}

/**
 * The headers of a request as handlers see them: pseudo headers and hop-by-hop ones are left out. Reading one costs a
 * look-up; the Headers object, which costs several microseconds, is made for all other uses.
 */
export function requestHeaders(incoming: IncomingHttpHeaders): Headers {
  const headers = Object.create(lazy) as Lazy;
  headers.incoming = incoming;
  headers.named = namedHop(incoming.connection);
  headers.real = undefined;
  return headers;
}

const lazy = Object.create(Headers.prototype, {
  get: {
    value(this: Lazy, name: string): string | null {
      const key = name.toLowerCase();
      if (this.real !== undefined || !token.test(key)) return real(this).get(name);
      if (hidden(key, this.named) || !Object.hasOwn(this.incoming, key)) return null;
      const value = this.incoming[key];
      return typeof value === "string" ? value : real(this).get(name);
    },
  },
  ...Object.fromEntries(
    (["append", "delete", "entries", "forEach", "getSetCookie", "has", "keys", "set", "values"] as const).map(
      (name) => [
        name,
        {
          value(this: Lazy, ...args: unknown[]): unknown {
            return (real(this)[name] as (...given: unknown[]) => unknown)(...args);
          },
        },
      ],
    ),
  ),
  [Symbol.iterator]: {
    value(this: Lazy) {
      return real(this)[Symbol.iterator]();
    },
  },
}) as Headers;

function real(headers: Lazy): Headers {
  headers.real ??= copied(headers.incoming, headers.named);
  return headers.real;
}

function copied(incoming: IncomingHttpHeaders, named: ReadonlySet<string> | undefined): Headers {
  const headers = new Headers();
  for (const name in incoming) {
    const value = incoming[name];
    if (value === undefined || hidden(name, named)) continue;
    if (typeof value === "string") headers.set(name, value);
    else for (const item of value) headers.append(name, item);
  }
  return headers;
}

function hidden(name: string, named: ReadonlySet<string> | undefined): boolean {
  return hopByHop.has(name) || name.charCodeAt(0) === 58 || named?.has(name) === true;
}

/** The headers that are for this connection alone, because the header `Connection` names them (RFC 9110, 7.6.1). */
function namedHop(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return undefined;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}

// What the transcoder itself says of its answers.
const ours = new Set(["content-length", "content-type", "content-encoding", "date", ...hopByHop]);

/** Copies headers that a handler or an error set onto an answer. */
export function copyHeaders(from: Headers, to: Record<string, string | string[]>): void {
  for (const [name, value] of from) if (!ours.has(name) && name !== "set-cookie") to[name] = value;
  const cookies = from.getSetCookie();
  if (cookies.length > 0) to["set-cookie"] = cookies;
}
