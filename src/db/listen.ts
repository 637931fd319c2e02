import postgres from "postgres";
import { clientOptions, hostOf } from "./connect.ts";
import { sockets } from "./driver/sockets.ts";

/** Hears what other replicas call out. A hint and no more: it is lost while the connection is, and behind some proxies. */
export interface Listener {
  stop(): Promise<void>;
}

const againMs = 1000;

/**
 * Listens on a channel, on a connection of its own that is made anew when it breaks. `heard` is called with
 * the text of each call, and with an empty one whenever a connection begins, since calls may have been missed.
 */
export function listen(url: string, channel: string, heard: (payload: string) => void): Listener {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let end: () => Promise<void> = async () => undefined;

  // A client for each connection, as in connections.ts: one whose connection has closed is never used again.
  function open() {
    const made = sockets();
    let closed = false;
    const onclose = () => {
      if (closed || stopped) return;
      closed = true;
      made.cut();
      timer = setTimeout(open, againMs).unref();
    };
    const client = postgres(url, {
      ...clientOptions,
      ...hostOf(url),
      connection: { application_name: "belfry listener" },
      max: 1,
      socket: made.once(),
      onclose,
      onnotify: (_channel: string, payload: string) => heard(payload),
    } as never);
    end = () => client.end({ timeout: 0 });
    client.unsafe(`listen ${channel}`).then(() => heard(""), onclose);
  }

  open();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await end();
    },
  };
}
