import { httpStatus } from "../wire/status.ts";

/** The code that most likely stands behind an HTTP status, for the log of answers that no RPC function has given. */
export function codeOfStatus(status: number): number {
  if (status < 400) return 0;
  if (status === 413) return 8;
  if (status === 405) return 12;
  for (let code = 3; code <= 16; code += 1) if (httpStatus(code) === status) return code;
  return status < 500 ? 3 : 2;
}
