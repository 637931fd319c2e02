import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { decode, encode, type Packet } from "dns-packet";

/** A name server on loopback, and a resolver that asks it alone. */
export interface NameServer {
  resolver: Resolver;
  /** The names that were asked for their IPv4 addresses, in order. */
  asked: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Serves addresses by name; `addresses` is asked again for each question, with how often the name was asked before. */
export async function nameServer(
  addresses: (name: string, before: number) => string[] | "silence",
): Promise<NameServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (bytes, from) => {
    const query = decode(bytes);
    const { name = "", type = "A" } = query.questions?.[0] ?? {};
    const before = asked.filter((each) => each === name).length;
    const found = addresses(name, before);
    if (type === "A") asked.push(name);
    if (found === "silence") return;
    const fitting = found.filter((address) => (type === "AAAA") === address.includes(":"));
    const answer: Packet = {
      type: "response",
      id: query.id ?? 0,
      flags: found.length === 0 ? 3 : 0,
      questions: query.questions ?? [],
      answers: fitting.map((data) => ({ name, type: type as "A" | "AAAA", ttl: 0, data })),
    };
    socket.send(encode(answer), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const resolver = new Resolver({ timeout: 300, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return {
    resolver,
    asked,
    async [Symbol.asyncDispose]() {
      resolver.cancel();
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    },
  };
}
