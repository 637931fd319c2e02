import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { destinationOf } from "../../src/db/connect.ts";
import type { Random } from "./random.ts";

/** How bad the way to PostgreSQL is. Probabilities are by piece of traffic. */
export interface Weather {
  delayMsMax: number;
  /** Both sides are reset instead of the piece being handed on. */
  cut: number;
  /** The piece is handed on to PostgreSQL, its answer is not: its outcome is unknown. */
  cutAfter: number;
  /** The same, for pieces that hold a commit. */
  cutCommit: number;
}

export const fine: Weather = { delayMsMax: 0, cut: 0, cutAfter: 0, cutCommit: 0 };

/** A way to PostgreSQL that a seed makes worse. */
export interface Proxy {
  readonly url: string;
  weather: Weather;
  /** How often a connection was cut: at random, and behind a commit. */
  readonly cuts: { any: number; commits: number };
  /** Resets every connection. */
  cutAll(): void;
  close(): Promise<void>;
}

/** Reads what a client sends; reports each piece whether a commit ends in it. */
function commitFinder(): (piece: Buffer) => boolean {
  let rest = Buffer.alloc(0);
  let started = false;
  // Statements that the client has prepared, by name, which are a commit.
  const commits = new Set<string>();

  function isCommit(kind: string, body: Buffer): boolean {
    const [first = "", second = ""] = body.toString("latin1").split("\0");
    if (kind === "Q") return first.trim() === "commit";
    if (kind === "P" && second.trim() === "commit") commits.add(first);
    return kind === "B" && commits.has(second);
  }

  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    let found = false;
    for (;;) {
      // The first message has no letter.
      const head = started ? 1 : 0;
      if (rest.length < head + 4 || rest.length < head + rest.readUInt32BE(head)) return found;
      const end = head + rest.readUInt32BE(head);
      if (started) found = isCommit(String.fromCharCode(rest[0] as number), rest.subarray(5, end)) || found;
      started = true;
      rest = rest.subarray(end);
    }
  };
}

/** Listens before the PostgreSQL of this address. */
export async function openProxy(target: string, { next, chance }: Random): Promise<Proxy> {
  const pairs = new Set<() => void>();
  const cuts = { any: 0, commits: 0 };
  const proxy = { weather: fine };

  function pipe(from: Socket, to: Socket, toServer: boolean, cutBoth: () => void, mute: () => void) {
    let turn = Promise.resolve();
    const commits = commitFinder();
    async function handOn(piece: Buffer) {
      const { delayMsMax, cut, cutAfter, cutCommit } = proxy.weather;
      if (delayMsMax > 0) await new Promise((resolve) => setTimeout(resolve, next() * delayMsMax));
      if (chance(cut)) {
        cuts.any++;
        cutBoth();
      } else if (toServer && commits(piece) && chance(cutCommit)) {
        cuts.commits++;
        mute();
        to.write(piece);
      } else if (toServer && chance(cutAfter)) {
        cuts.any++;
        mute();
        to.write(piece);
      } else if (!to.destroyed) to.write(piece);
    }
    from.on("data", (piece: Buffer) => {
      turn = turn.then(() => handOn(piece));
    });
  }

  const server = createServer({ noDelay: true }, (client) => {
    const upstream = dial({ ...destinationOf(target), noDelay: true });
    const cutBoth = () => {
      pairs.delete(cutBoth);
      client.resetAndDestroy();
      // Over a Unix socket there is no reset.
      upstream.destroy();
    };
    pairs.add(cutBoth);
    // PostgreSQL does the work and answers; only then is the connection cut.
    let muted = false;
    const mute = () => {
      muted = true;
      upstream.once("data", cutBoth);
    };
    for (const socket of [client, upstream]) socket.on("error", cutBoth).on("close", cutBoth);
    pipe(client, upstream, true, cutBoth, mute);
    const back = { write: (piece: Buffer) => muted || client.write(piece) };
    pipe(upstream, back as Socket, false, cutBoth, mute);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    get weather() {
      return proxy.weather;
    },
    set weather(weather) {
      proxy.weather = weather;
    },
    cuts,
    cutAll() {
      for (const cut of [...pairs]) cut();
    },
    async close() {
      for (const cut of [...pairs]) cut();
      server.close();
      await once(server, "close");
    },
  };
}
