import postgres from "postgres";
import { addressOptions, clientOptions } from "./connect.ts";
import { sockets } from "./driver/sockets.ts";
import { sessionName } from "./session-name.ts";

/** Hears notifications of other replicas. A hint and no more: they are lost while the connection is, and behind some proxies. */
export interface NotifyListener {
  /**
   * Listens on a channel from now on. `heard` is called with the payload of each notification, and with an empty one
   * whenever listening begins, after each reconnect as well, since notifications may have been missed. A channel has one
   * `heard`, the last.
   */
  listen(channel: string, heard: (payload: string) => void): void;
  /** Closes the connection; nothing is heard any more. */
  stop(): Promise<void>;
}

const reconnectMs = 1000;

/** Opens one connection for all channels, which is made again when it breaks. */
export function listener(url: string): NotifyListener {
  const channels = new Map<string, (payload: string) => void>();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let close: () => Promise<void> = async () => undefined;
  /** Listens on these channels on the connection that there is now. */
  let ask: (names: readonly string[]) => void = () => undefined;

  const tell = (channel: string, payload: string) => {
    if (!stopped) channels.get(channel)?.(payload);
  };

  // A client for each connection, as in connections.ts: one whose connection has closed is never used again.
  function open() {
    const made = sockets();
    let closed = false;
    const onclose = () => {
      if (closed || stopped) return;
      closed = true;
      ask = () => undefined;
      made.cut();
      timer = setTimeout(open, reconnectMs).unref();
    };
    const client = postgres(url, {
      ...clientOptions,
      ...addressOptions(url),
      connection: { application_name: sessionName("listener") },
      max: 1,
      socket: made.once(),
      onclose,
      onnotify: tell,
    } as never);
    close = () => client.end({ timeout: 0 });
    ask = (names) => {
      const asked = client.unsafe(names.map((name) => `listen "${name}"`).join("; "));
      asked.then(() => {
        for (const name of names) tell(name, "");
      }, onclose);
    };
    if (channels.size > 0) ask([...channels.keys()]);
  }

  open();
  return {
    listen(channel, heard) {
      channels.set(channel, heard);
      ask([channel]);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await close();
    },
  };
}
