import { randomBytes } from "node:crypto";

const process = randomBytes(6).toString("hex");
let count = 0;

/** The caller's own x-request-id when it is short and plain, else a new id: one of this process and a running number. */
export function requestId(header: string | string[] | undefined): string {
  if (typeof header === "string" && /^[\w.:-]{1,64}$/.test(header)) return header;
  count += 1;
  return `${process}-${count.toString(36)}`;
}
