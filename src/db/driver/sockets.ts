import { Socket } from "node:net";
import { connectionLost } from "./connection-errors.ts";

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

// Messages of a password: SCRAM's two, and MD5's digest.
const scram = /^p....(SCRAM-SHA-256\0|c=biws,r=)/s;
const md5 = /^p....md5[0-9a-f]{32}\0$/s;

/**
 * A server that asks for the password itself does not get it: the driver would send it to any process that listens there. What goes
 * through TLS does not come by here.
 */
function refuseClearText(socket: Socket): void {
  const write = socket.write.bind(socket) as (piece: Uint8Array | string, ...rest: never[]) => boolean;
  socket.write = ((piece: Uint8Array | string, ...rest: never[]) => {
    // 'p', with which each message of a password begins, and no other one.
    const text = piece[0] === 0x70 ? Buffer.from(piece as Uint8Array).toString("latin1") : undefined;
    if (text !== undefined && !scram.test(text) && !md5.test(text)) {
      socket.destroy(
        connectionLost("the database asks for the password in clear text, without TLS: it does not get it"),
      );
      return false;
    }
    return write(piece, ...rest);
  }) as Socket["write"];
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
    refuseClearText(socket); // last: connect() sets the socket's own write again
    return socket;
  }

  return {
    open,
    once() {
      let first: Socket | undefined;
      return (options) => {
        if (first?.destroyed) {
          const refused = new Socket();
          setImmediate(() => refused.destroy(connectionLost("the server closed the connection before it answered")));
          return refused;
        }
        const socket = open(options);
        first ??= socket;
        return socket;
      };
    },
    cut() {
      for (const socket of live) socket.destroy(connectionLost());
    },
  };
}
