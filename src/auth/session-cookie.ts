import type { IncomingHttpHeaders } from "node:http";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { unauthenticated } from "../errors.ts";
import { withProof } from "./session-token.ts";

/** The cookie of a session. Its prefix makes browsers refuse one that another host, or a page without TLS, has set. */
const cookieName = "__Host-belfry";

/** The header of a session's second half, which the console keeps in the storage of its own origin. */
export const proofHeader = "service-session-proof";

/** A request as far as its headers say where it comes from. */
interface Sent {
  readonly headers: IncomingHttpHeaders;
  readonly method?: string | undefined;
}

/** Types of bodies that no form of another site can send. */
const sentByScripts =
  /^application\/(?:json|proto|connect\+(?:json|proto)|grpc-web(?:-text)?(?:\+(?:proto|json))?)[ \t]*(?:;|$)/i;

/**
 * Whether a request comes from a page of this service: the browser says so, or, where it does not, its origin is ours, by the host that
 * it asked or by the address that people use. What has a body, or could have one, is of a type that no form sends.
 */
export function isOwnPage({ headers, method }: Sent, publicOrigin: string | undefined): boolean {
  const site = headers["sec-fetch-site"];
  if (site === undefined ? !isOwnOrigin(headers, publicOrigin) : site !== "same-origin") return false;
  const type = headers["content-type"];
  if (type !== undefined) return sentByScripts.test(type);
  return method === "GET" || method === "HEAD" || method === "DELETE";
}

function isOwnOrigin(headers: IncomingHttpHeaders, publicOrigin: string | undefined): boolean {
  const { origin } = headers;
  if (origin === undefined) return false;
  const host = (headers[":authority"] as string | undefined) ?? headers.host;
  return origin === publicOrigin || (host !== undefined && origin === `https://${host.toLowerCase()}`);
}

/**
 * The session that a request's headers prove: the token of its cookie and the page's proof, joined as `createSession` digests them;
 * undefined without a cookie. Browsers send the cookie to every port of the host, but keep the proof for the page's own origin.
 * @throws code 16 for a cookie without the proof
 */
export function provenSession(cookie: string | null | undefined, proof: unknown): string | undefined {
  const start = `${cookieName}=`;
  const pair = cookie?.split(";").find((each) => each.trimStart().startsWith(start));
  if (pair === undefined) return undefined;
  if (typeof proof === "string" && proof !== "") return withProof(pair.trim().slice(start.length), proof);
  throw unauthenticated(
    "a session's cookie counts only with the header service-session-proof, which the page that logged in sends; log in again",
    ErrorReason.SESSION_OF_OTHER_PAGE,
  );
}

/** The value of `Set-Cookie` that stores a session's token, and removes it with an empty one. */
export function setCookie(token: string, ageMsMax: number): string {
  const ageSec = token === "" ? 0 : Math.floor(ageMsMax / 1000);
  return [`${cookieName}=${token}`, "Path=/", `Max-Age=${ageSec}`, "Secure", "HttpOnly", "SameSite=Strict"].join("; ");
}

// No header can hold a line feed, so no key is taken for a session.
const sessionMark = "\n";

/** Returns what admits a request: its key, else the session of its cookie where that counts. Read again by `sessionOf`. */
export function credentialOf(
  key: string | null,
  request: Sent | undefined,
  publicOrigin: string | undefined,
): string | null {
  if (key || request === undefined) return key;
  const proven = provenSession(request.headers.cookie, request.headers[proofHeader]);
  if (proven === undefined) return key;
  if (isOwnPage(request, publicOrigin)) return sessionMark + proven;
  throw unauthenticated(
    "a session counts only in requests of this service's own pages with JSON, Connect or gRPC-Web; send a key in the header service-api-key",
    ErrorReason.SESSION_OF_OTHER_PAGE,
  );
}

/** The session in what a request is admitted by, as `provenSession` gives it; undefined when that is a key. */
export function sessionOf(credential: string | null): string | undefined {
  return credential?.startsWith(sessionMark) ? credential.slice(1) : undefined;
}
