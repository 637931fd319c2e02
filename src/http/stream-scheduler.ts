import type { Http2Session, ServerHttp2Stream } from "node:http2";

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
  const queues = new Map<Http2Session, Waiting[]>(); // in the order of their turns
  function serve() {
    let left = turnStreams;
    for (const [session, queue] of queues) {
      const next = queue.shift();
      queues.delete(session);
      if (queue.length > 0) queues.set(session, queue);
      if (next === undefined || next.stream.closed) continue;
      next.begin();
      left -= 1;
      if (left === 0) break;
    }
    if (queues.size > 0) setImmediate(serve);
  }
  return (session, waiting) => {
    const queue = queues.get(session);
    if (queue !== undefined) queue.push(waiting);
    else if (queues.set(session, [waiting]).size === 1) setImmediate(serve);
  };
}
