import type { Code } from "@connectrpc/connect";

const statuses = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401] as const;

/** The HTTP status of an error that is answered in our form outside of any RPC protocol. */
export function httpStatus(code: Code): number {
  return statuses[code] ?? 500;
}

/** The likely code behind an HTTP status, for the log. */
export function codeOfStatus(status: number): number {
  if (status < 400) return 0;
  if (status === 400 || status === 413 || status === 415) return 3;
  const code = statuses.indexOf(status as (typeof statuses)[number]);
  return code < 0 ? 2 : code;
}
