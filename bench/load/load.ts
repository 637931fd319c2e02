/** One request as a generator sends it again and again. */
export interface LoadRequest {
  http: 1 | 2;
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  /** Whole, with the frame of its protocol. */
  body?: Uint8Array;
  /** What is different in each request; without it all are the same. */
  vary?: Variation;
}

/** Places in a body that are overwritten before each sending, so that no event and no point is sent twice. */
export interface Variation {
  /** How the body holds times: ms in 13 digits or in a Protobuf varint of 6 bytes, or nanoseconds in 8 bytes. */
  times: "digits" | "varint" | "nanoseconds";
  timesAt: readonly number[];
  /** Where the 8 digits of each item's host stand. */
  hostsAt: readonly number[];
  /** Where the 8 digits of each point's metric stand: those of a host one after the other. */
  metricsAt?: readonly number[];
  /** Metrics of a host; absent: 1. */
  metricsEach?: number;
  /** Where values are that any number from 10.00 to 99.99 replaces. */
  valuesAt?: readonly number[];
  /** The time of request 0, ms since the epoch; each further request is a millisecond later. */
  baseMs: number;
  /** Instead: how much later the same hosts come again. */
  stepMs?: number;
  /** How many requests pass until the same hosts come again. */
  hostSets: number;
}

/** What a generator does for one measurement. */
export interface Load {
  port: number;
  request: LoadRequest;
  connections: number;
  /** Requests in work on each connection; HTTP/1.1 has one. */
  streams: number;
  /** Before the counting begins. */
  leadInMs: number;
  countMs: number;
}

/** What came of it. */
export interface Outcome {
  perSec: number;
  p50Ms: number;
  p99Ms: number;
  /** All answers, also those before and after the counting. */
  answered: number;
  /** Answers that were not good: neither rates nor times hold them. */
  bad: number;
  /** Share of one processor that the generator used; undefined when it does not know. */
  busy: number | undefined;
}

/** The value at a share of a sorted list. */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
