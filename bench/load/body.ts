import type { LoadRequest, Variation } from "./load.ts";

// Over all measurements of a process, so that no event is sent twice.
let sequence = 0;

/** Overwrites times and hosts in `bytes`, whose body begins at `offset`, for one more request. */
function vary(bytes: Buffer, offset: number, { times, timesAt, hostsAt, baseMs, hostSets }: Variation): void {
  const timeMs = baseMs + sequence;
  const firstHost = (sequence % hostSets) * hostsAt.length;
  sequence += 1;
  for (const at of timesAt) {
    if (times === "digits") writeDigits(bytes, offset + at, 13, timeMs);
    else writeVarint(bytes, offset + at, timeMs);
  }
  for (const [index, at] of hostsAt.entries()) writeDigits(bytes, offset + at, 8, firstHost + index);
}

function writeDigits(bytes: Buffer, at: number, count: number, value: number): void {
  let rest = value;
  for (let i = at + count - 1; i >= at; i -= 1) {
    bytes[i] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

function writeVarint(bytes: Buffer, at: number, value: number): void {
  let rest = value;
  for (let i = at; i < at + 6; i += 1) {
    bytes[i] = (rest % 128) | (i < at + 5 ? 128 : 0);
    rest = Math.floor(rest / 128);
  }
}

/** A body for one request in work at a time; each call of `next` makes it the next request's. */
export function bodyOf({ body, vary: variation }: LoadRequest): { bytes: Buffer; next(): void } {
  const bytes = Buffer.from(body ?? []);
  return { bytes, next: () => variation && vary(bytes, 0, variation) };
}
