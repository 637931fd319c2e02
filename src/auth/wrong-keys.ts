import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { setBounded } from "../bounded-map.ts";
import { exhausted } from "../errors.ts";

/** Delays the answers to wrong keys, links and cookies. Calls with good ones are never delayed, whatever their address. */
export interface WrongKeys {
  /** Counts a wrong key of this address; resolves when it may be answered. @throws code 8 when too many wait for that. */
  note(address: string): Promise<void> | undefined;
}

interface Options {
  /** Wrong keys of one address in a minute that are answered at once. */
  perMinuteMax: number;
  /** How late the others are answered, ms. */
  delayMs?: number;
  /** Notified once a minute of an address that is slowed down. */
  onSlowed?(network: string): void;
  networksMax?: number;
  waitingMax?: number;
}

const minuteMs = 60_000;

/** Counts by address; for IPv6 by its /64, since one host may use every address of it. The oldest count is forgotten first. */
export function wrongKeys(options: Options): WrongKeys {
  const { perMinuteMax, delayMs = 1000, onSlowed, networksMax = 10_000, waitingMax = 1000 } = options;
  const counts = new Map<string, { count: number; sinceMs: number }>();
  let waiting = 0;

  function counted(network: string): number {
    const nowMs = performance.now();
    const known = counts.get(network);
    if (known !== undefined && nowMs - known.sinceMs < minuteMs) return ++known.count;
    setBounded(counts, network, { count: 1, sinceMs: nowMs }, networksMax);
    return 1;
  }

  async function later() {
    waiting += 1;
    await sleep(delayMs);
    waiting -= 1;
  }

  return {
    note(address) {
      const network = networkOf(address);
      const count = counted(network);
      if (count <= perMinuteMax) return undefined;
      if (count === perMinuteMax + 1) onSlowed?.(network);
      if (waiting >= waitingMax)
        throw exhausted("too many wrong keys; check the header service-api-key", 60, ErrorReason.WRONG_KEYS);
      return later();
    },
  };
}

/** Fails as what a caller is refused with, late when it is one wrong proof of many. @throws the error; code 8 when too many wait */
export async function refuse(error: unknown, guesses: WrongKeys | undefined, address: string): Promise<never> {
  if (error instanceof ConnectError && error.code === Code.Unauthenticated) await guesses?.note(address);
  throw error;
}

/** The network that counts as one address: the address itself for IPv4, its /64 for IPv6. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped !== null) return mapped[1] as string;
  if (!address.includes(":")) return address;
  const [head = "", tail] = (address.split("%", 1)[0] as string).split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
