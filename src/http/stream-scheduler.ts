import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { fairQueue } from "../fair-queue.ts";

/** How many requests are begun in a turn of the event loop. */
const turnStreams = 4;

/** A stream whose request waits for its turn. */
interface Waiting {
  stream: ServerHttp2Stream;
  begin(): void;
}

/**
 * Begins requests when all that arrived at once is read, so that a stream that was reset in the same breath costs nothing
 * more; a few in each turn of the event loop, connection after connection, so that no connection waits for all requests of another.
 */
export function streamScheduler(): (session: Http2Session, waiting: Waiting) => void {
  const waiting = fairQueue<Waiting>();
  function serve() {
    for (let left = turnStreams; left > 0 && waiting.size > 0; ) {
      const next = waiting.next();
      if (next === undefined || next.stream.closed) continue;
      next.begin();
      left -= 1;
    }
    if (waiting.size > 0) setImmediate(serve);
  }
  return (session, stream) => {
    waiting.add([session], stream);
    if (waiting.size === 1) setImmediate(serve);
  };
}
