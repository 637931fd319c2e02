import type { IncomingHttpHeaders } from "node:http";

/** The header that carries the API key, on every protocol. */
export const keyHeader = "service-api-key";

/** What every key begins with. Credentials that do not are those of a proxy, and none of ours. */
const keyStart = "bf_";

interface KeyPlaces {
  /** Headers that carry the key where ours is absent, in lower case. */
  aliases: readonly string[];
  /** Whether the password of `Authorization: Basic` counts as a key. */
  basic(): boolean;
}

/**
 * Puts the key of a request into our header, from wherever it came: our header, an alias, or `Authorization`, from which a
 * key is removed, so that nothing that reads headers later meets it there. Two keys that differ are joined as HTTP joins doubled
 * headers: no key has that form, so they are refused where keys are verified; and so are two headers `Authorization` of `rawHeaders`.
 */
export function adoptKey(
  headers: IncomingHttpHeaders,
  { aliases, basic }: KeyPlaces,
  rawHeaders: readonly string[] = [],
): void {
  if (headers.authorization === undefined && aliases.length === 0) return;
  if (isDoubled("authorization", rawHeaders)) {
    // Node keeps the first alone, a proxy in between perhaps the last.
    headers[keyHeader] = `${headers.authorization}, `;
    delete headers.authorization;
    return;
  }
  const named = headers[keyHeader] || aliasedKey(headers, aliases);
  const authorized = authorizedKey(headers.authorization, basic);
  if (authorized === undefined) {
    if (named !== undefined) headers[keyHeader] = named;
    return;
  }
  delete headers.authorization;
  const differs = typeof named === "string" && named.startsWith(keyStart) && named !== authorized;
  headers[keyHeader] = differs ? `${named}, ${authorized}` : (named ?? authorized);
}

/** Tells whether a header was sent more than once. */
function isDoubled(name: string, rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === name) count++;
  return count > 1;
}

function aliasedKey(headers: IncomingHttpHeaders, aliases: readonly string[]): string | string[] | undefined {
  const value = aliases.map((name) => headers[name]).find((each) => each !== undefined);
  return typeof value === "string" ? value.replace(/^bearer +/i, "") : value;
}

/** The key in a value of `Authorization`; undefined for everything that has no key's form. */
function authorizedKey(value: string | undefined, basic: KeyPlaces["basic"]): string | undefined {
  if (value === undefined) return undefined;
  const [, scheme = "", credentials = ""] = /^(bearer|basic) +(\S+) *$/i.exec(value) ?? [];
  const bearer = scheme.toLowerCase() === "bearer";
  const text = bearer ? credentials : scheme !== "" && basic() ? passwordOf(credentials) : "";
  return text.startsWith(keyStart) ? text : undefined;
}

/** Tells whether a request without a key holds one where none is read: in `x-api-key`, or as user name or password of `Basic`. */
export function hasUnreadKey({ authorization = "", "x-api-key": other }: IncomingHttpHeaders): boolean {
  if (typeof other === "string" && other.startsWith(keyStart)) return true;
  const [, credentials] = /^basic +(\S+) *$/i.exec(authorization) ?? [];
  if (credentials === undefined) return false;
  return (
    passwordOf(credentials).startsWith(keyStart) || Buffer.from(credentials, "base64").toString().startsWith(keyStart)
  );
}

function passwordOf(credentials: string): string {
  const pair = Buffer.from(credentials, "base64").toString("utf8");
  return pair.slice(pair.indexOf(":") + 1);
}
