import { timingSafeEqual } from "node:crypto";
import type { ConnectError } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { limiter, networkOf } from "../limiter.ts";
import { keyDigest } from "./key.ts";
import type { Principal } from "./principal.ts";

/** A key or session that holds: the digest of its text, which never changes, and whose it is. */
export interface VerifiedCaller {
  readonly digest: Buffer;
  readonly principal: Principal;
}

interface Entry extends VerifiedCaller {
  /** Before the statement was sent, so that the entry's age counts from what the database knew. */
  readonly readMs: number;
  /** The text that had this digest, as bytes: comparing it, also in constant time, takes a tenth of digesting it again. */
  proven: Buffer | undefined;
}

/** Knows who a text is of, by the name that the text begins with, for less than a second. */
export interface FreshCache<N> {
  /** Returns whom the text is known to be of; undefined when that has to be looked up. */
  known(named: N, text: string): Principal | undefined;
  /** Returns whose the text is. @throws the refusal; code 14 while the database is away; 8 when too many unknown names wait */
  find(named: N, text: string, address?: string): Principal | Promise<Principal>;
  /** Refuses what has ended here. */
  forget(named: N): void;
}

interface Options<N> {
  nameOf(named: N): string;
  /** Returns what holds by now; undefined when nothing does. `before`: whose it was when it was read before. */
  read(named: N, before: Principal | undefined): Promise<VerifiedCaller | undefined>;
  refused(): ConnectError;
  /** What is read, to be read after "too many unknown". */
  what: string;
  /** A clock that never goes back; left out: that of this process. */
  nowMs?: (() => number) | undefined;
}

/** An entry is never used beyond this age: what was revoked is refused within a second. */
export const staleMs = 900;
/** From this age on it is read again in the background, so that who calls often never waits. */
const refreshMs = 450;
const namesMax = 10_000;
// Names that are tried out wait for each other, and take no further connections.
const unknownMax = 2;
const unknownWaitingMax = 1000;

/**
 * A cache of at most a second. Unknown names are looked up two at a time, in turns by address, however many names are tried out from others;
 * one that is refused costs a look a second.
 */
export function freshCache<N>({
  nameOf,
  read,
  refused,
  what,
  nowMs = () => performance.now(),
}: Options<N>): FreshCache<N> {
  const entries = new LRUCache<string, Entry>({ max: namesMax });
  const misses = new LRUCache<string, true>({ max: namesMax, ttl: staleMs, perf: { now: nowMs } }); // apart, so that names tried out push out no good one
  /** Reads under way, by name; one that `forget` took out of them counts for nothing. */
  const reads = new Map<string, Promise<Entry | undefined>>();
  /** Who waits to read a name, by address and name. */
  const waits = new Map<string, Promise<Entry | undefined>>();
  const unknown = limiter({ max: unknownMax, waitingMax: unknownWaitingMax, what: `unknown ${what} are looked up` });

  const isFresh = ({ readMs }: Entry) => nowMs() - readMs <= staleMs;
  function miss(name: string, readMs: number) {
    entries.delete(name);
    misses.set(name, true, { start: readMs });
  }

  /** One read a name at a time; calls that arrive meanwhile share it. */
  function load(named: N, before?: Principal): Promise<Entry | undefined> {
    const name = nameOf(named);
    return shared(reads, name, async (isCurrent) => {
      const readMs = nowMs();
      const found = await read(named, before);
      if (!isCurrent()) return undefined;
      if (found === undefined) {
        miss(name, readMs);
        return undefined;
      }
      const entry: Entry = { ...found, readMs, proven: undefined };
      entries.set(name, entry);
      return entry;
    });
  }

  /** In the line of the caller's own address; once it is its turn, others may have read the name. */
  function loadInTurn(named: N, address: string): Promise<Entry | undefined> {
    const name = nameOf(named);
    return shared(waits, `${address} ${name}`, () =>
      unknown.run({ address }, async () => {
        const entry = entries.get(name);
        if (entry !== undefined && isFresh(entry)) return entry;
        return misses.has(name) ? undefined : await load(named, entry?.principal);
      }),
    );
  }

  function known(named: N, text: string): Principal | undefined {
    const entry = entries.get(nameOf(named));
    if (entry === undefined) return undefined;
    if (!isFresh(entry) || !holds(entry, text)) return undefined;
    if (nowMs() - entry.readMs > refreshMs) load(named, entry.principal).catch(() => {}); // the next call reads it
    return entry.principal;
  }

  return {
    known,
    find(named, text, address = "") {
      const principal = known(named, text);
      if (principal !== undefined) return principal;
      const name = nameOf(named);
      const entry = entries.get(name);
      if (entry === undefined ? misses.has(name) : !holds(entry, text)) throw refused();
      // Who has an entry does not wait among those who try names out.
      const reading = entry ? load(named, entry.principal) : loadInTurn(named, networkOf(address));
      return reading.then((fresh) => {
        if (fresh === undefined || !holds(fresh, text)) throw refused();
        return fresh.principal;
      });
    },
    forget(named) {
      const name = nameOf(named);
      reads.delete(name);
      miss(name, nowMs());
    },
  };
}

/** Begins work under a key, or shares what is under way; `isCurrent`: whether it still is what others share. */
function shared<T>(
  all: Map<string, Promise<T>>,
  key: string,
  work: (isCurrent: () => boolean) => Promise<T>,
): Promise<T> {
  const running = all.get(key);
  if (running !== undefined) return running;
  const isCurrent = () => all.get(key) === begun;
  const begun = work(isCurrent).finally(() => {
    if (isCurrent()) all.delete(key);
  });
  all.set(key, begun);
  return begun;
}

function holds(entry: Entry, text: string): boolean {
  const bytes = Buffer.from(text);
  if (entry.proven?.length === bytes.length) return timingSafeEqual(entry.proven, bytes);
  if (!timingSafeEqual(entry.digest, keyDigest(text))) return false;
  entry.proven = bytes;
  return true;
}
