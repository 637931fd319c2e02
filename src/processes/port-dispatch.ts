import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Config } from "../config/settings.ts";
import { listenError } from "../http/address.ts";
import type { Fleet, Member } from "./fleet.ts";

/** The port of a machine. */
export interface PortDispatch {
  readonly port: number;
  /** No further connection is taken. */
  close(): void;
}

/** A process silent for longer gets no connection while another reports. */
const silentMs = 5000;

/**
 * The member that gets the next connection: that with the fewest, and among these the one that was given the fewest so far. Those that are
 * not ready, or silent, only when no other is there.
 */
export function leastLoaded<M extends Pick<Member, "state" | "sent" | "load" | "reportedMs">>(
  members: readonly M[],
  nowMs: number,
): M | undefined {
  const serving = members.filter(({ state }) => state === "serving");
  const fit = serving.filter(({ load, reportedMs }) => load.notReady === undefined && nowMs - reportedMs < silentMs);
  // What was sent after its last report counts as well.
  const connections = ({ load, sent }: M) => load.open + sent - load.taken;
  const from = fit.length > 0 ? fit : serving;
  return from.toSorted((one, other) => connections(one) - connections(other) || one.sent - other.sent)[0];
}

/**
 * Opens the port, whose connections go to the members of the fleet unread: each ends TLS and speaks HTTP itself. `before` is called before
 * each connection is handed over. @throws StartError when it cannot listen
 */
export async function openDispatch(
  config: Pick<Config, "host" | "port">,
  fleet: Pick<Fleet, "members" | "hand">,
  before: () => void,
): Promise<PortDispatch> {
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket: Socket) => {
    socket.on("error", () => undefined); // it may break while it waits to be handed over
    before();
    const member = leastLoaded(fleet.members(), performance.now());
    if (member === undefined) socket.destroy();
    else fleet.hand(member, socket);
  });
  const { host, port } = config;
  await new Promise<void>((resolve, reject) => {
    server
      .once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, config)))
      .listen(port, host, resolve);
  });
  server.on("error", () => undefined); // a connection that could not be taken, for want of file descriptors
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
