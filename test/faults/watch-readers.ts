import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { envelope, type Target } from "../support/clients.ts";

/** Watches that count what comes, without reading it. */
export interface WatchReaders {
  /** How many changes each has been sent, by its place. */
  readonly counts: readonly number[];
  /** Watches that have ended by themselves, and with what. */
  readonly ended: readonly string[];
  /** The last cursor of a watch over /v1. */
  cursor(i: number): string;
  /** Resolves when each has been sent this many. */
  until(count: number, withinMs: number): Promise<void>;
  close(): void;
}

const together = 100;
/** Changes are larger. */
const cursorBytesMax = 500;

interface Reader {
  take(piece: Buffer): void;
  cursor(): string;
}

/** Counts envelopes by their lengths. */
function ofEnvelopes(told: (bytes: number) => void): Reader {
  let head = Buffer.alloc(0);
  let skip = 0;
  return {
    cursor: () => "",
    take(piece) {
      let at = 0;
      while (at < piece.byteLength) {
        if (skip > 0) {
          const passed = Math.min(skip, piece.byteLength - at);
          skip -= passed;
          at += passed;
          continue;
        }
        const taken = piece.subarray(at, at + 5 - head.byteLength);
        head = Buffer.concat([head, taken]);
        at += taken.byteLength;
        if (head.byteLength < 5) return;
        skip = head.readUInt32BE(1);
        head = Buffer.alloc(0);
        told(skip);
      }
    },
  };
}

/** Counts lines, and keeps the last one whole. */
function ofLines(told: (bytes: number) => void): Reader {
  let line: Buffer[] = [];
  let last = "";
  return {
    cursor: () => /"cursor":"([^"]+)"/.exec(last)?.[1] ?? "",
    take(piece) {
      let from = 0;
      for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, from)) {
        last = Buffer.concat([...line, piece.subarray(from, at)]).toString();
        line = [];
        from = at + 1;
        told(last.length);
      }
      if (from < piece.byteLength) line.push(piece.subarray(from));
    },
  };
}

/**
 * Opens watches over HTTP/2, a hundred on a connection; every other one over gRPC in binary, those between over /v1. Resolves
 * when all have begun.
 * @param cursors where those over /v1 go on; absent: from now on
 */
export async function openWatches(
  { url }: Target,
  headers: Record<string, string>,
  count: number,
  cursors?: readonly string[],
): Promise<WatchReaders> {
  const sessions: http2.ClientHttp2Session[] = [];
  const counts = new Array<number>(count).fill(-1); // none has begun
  const ended: string[] = [];
  const readers: Reader[] = [];
  let closing = false;
  for (let i = 0; i < count; i += 1) {
    if (i % together === 0) sessions.push(http2.connect(url).on("error", (error) => ended.push(error.message)));
    const binary = cursors === undefined && i % 2 === 0;
    const stream = (sessions.at(-1) as http2.ClientHttp2Session).request({
      ":method": "POST",
      ":path": binary ? "/belfry.events.v1.EventQueryService/WatchEvents" : "/v1/events:watch",
      "content-type": binary ? "application/grpc+proto" : "application/json",
      ...headers,
    });
    // The first message is a cursor alone, and so are those after 15 s without a change.
    const told = (bytes: number) => {
      if (bytes > cursorBytesMax || counts[i] === -1) counts[i] = (counts[i] as number) + 1;
    };
    const reader = binary ? ofEnvelopes(told) : ofLines(told);
    readers.push(reader);
    stream.on("data", (piece: Buffer) => reader.take(piece));
    stream.on("error", () => {});
    stream.on("close", () => closing || ended.push(`watch ${i} ended: ${stream.rstCode} after ${counts[i]}`));
    stream.end(binary ? envelope(new Uint8Array([10, 0])) : JSON.stringify({ query: {}, cursor: cursors?.[i] ?? "" }));
  }
  async function until(wanted: number, withinMs: number) {
    const untilMs = performance.now() + withinMs;
    while (counts.some((each) => each < wanted)) {
      if (ended.length > 0) throw new Error(`${ended.length} watches have ended: ${ended[0]}`);
      if (performance.now() > untilMs) {
        const missing = counts.filter((each) => each < wanted).length;
        throw new Error(`${missing} of ${count} watches have not been sent ${wanted} changes: ${Math.min(...counts)}`);
      }
      await sleep(10);
    }
  }
  await until(0, 60_000);
  return {
    counts,
    ended,
    until,
    cursor: (i) => readers[i]?.cursor() ?? "",
    close() {
      closing = true;
      for (const session of sessions) session.destroy();
    },
  };
}
