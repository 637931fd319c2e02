import type { LoadRequest, Variation } from "./load.ts";

// Over all measurements of a process, so that no event is sent twice.
let sequence = 0;

/** Overwrites times, hosts, metrics and values in `bytes` for one more request. */
function vary(bytes: Buffer, variation: Variation): void {
  const { times, timesAt, hostsAt, baseMs, hostSets, stepMs, metricsAt, metricsEach = 1, valuesAt = [] } = variation;
  const timeMs = baseMs + (stepMs === undefined ? sequence : Math.floor(sequence / hostSets) * stepMs);
  const first = (sequence % hostSets) * hostsAt.length;
  sequence += 1;
  for (const at of timesAt) {
    if (times === "digits") writeDigits(bytes, at, 13, timeMs);
    else if (times === "varint") writeVarint(bytes, at, timeMs);
    else bytes.writeBigUInt64LE(BigInt(timeMs) * 1_000_000n, at);
  }
  for (const [index, at] of hostsAt.entries()) writeDigits(bytes, at, 8, Math.floor((first + index) / metricsEach));
  for (const [index, at] of metricsAt?.entries() ?? []) writeDigits(bytes, at, 8, (first + index) % metricsEach);
  for (const at of valuesAt) {
    const hundredths = 1000 + Math.floor(Math.random() * 9000);
    if (times !== "digits") bytes.writeDoubleLE(hundredths / 100, at);
    else {
      writeDigits(bytes, at, 2, Math.floor(hundredths / 100));
      writeDigits(bytes, at + 3, 2, hundredths % 100);
    }
  }
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
  return { bytes, next: () => variation && vary(bytes, variation) };
}
