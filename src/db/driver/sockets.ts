import { Socket } from "node:net";
import { lost } from "./lost.ts";

/** Where postgres.js says a connection should go. */
interface Destination {
  host: string[];
  port: number[];
  path: string | undefined;
}

/** The sockets of some clients. */
export interface Sockets {
  /** The `socket` option of postgres.js. It must not throw: the driver would lose that connection for good. */
  open(options: unknown): Socket;
  /** The same for one connection: the driver would try for ever while a server accepts it and closes it unanswered. */
  once(): (options: unknown) => Socket;
  /** Cuts every connection; statements in work fail with CONNECTION_CLOSED. */
  cut(): void;
}

/** Makes the sockets of some clients, and can cut them all: the driver itself offers no way to drop a silent server. */
export function sockets(): Sockets {
  const live = new Set<Socket>();
  let next = 0;

  function open(options: unknown): Socket {
    const { host, port, path } = options as Destination;
    // Not by a listener: with TLS the driver takes all listeners away.
    for (const old of live) if (old.destroyed) live.delete(old);
    const socket = new Socket();
    live.add(socket);
    // Without this, a statement of several packets waits up to 40 ms for an acknowledgement.
    socket.setNoDelay(true);
    const i = next++ % host.length;
    // postgres.js reads `host` off the socket for the name that TLS checks.
    Object.assign(socket, { host: host[i], port: port[i] });
    if (path) socket.connect(path);
    else socket.connect(port[i] as number, host[i] as string);
    return socket;
  }

  return {
    open,
    once() {
      let first: Socket | undefined;
      return (options) => {
        if (first?.destroyed) {
          const refused = new Socket();
          setImmediate(() => refused.destroy(lost("the server closed the connection before it answered")));
          return refused;
        }
        const socket = open(options);
        first ??= socket;
        return socket;
      };
    },
    cut() {
      for (const socket of live) socket.destroy(lost());
    },
  };
}
