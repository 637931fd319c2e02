import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { Change, EventQueryService, type WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../../src/db/connect.ts";
import { decodeChanges, type FeedChange } from "../../src/events/feed.ts";
import { occurrenceIdText } from "../../src/events/occurrence-id.ts";
import { type Protocol, transport } from "../support/clients.ts";
import { type Random, random } from "./random.ts";

/** A client that watches, and goes on behind its last cursor, on any server, when its watch ends. */
export interface Watcher {
  /** How often it has begun again. */
  readonly resumed: number;
  /** Waits until it has seen all that is stored, and compares both; returns what is wrong, a line each. */
  compare(db: Db, tenantId: string): Promise<string[]>;
  stop(): void;
}

interface WatcherOptions {
  name: string;
  seed: number;
  urls: readonly string[];
  headers: Record<string, string>;
  /** Only occurrences of these severities; empty: all. */
  severities: readonly Severity[];
  /** gRPC when it is left out. */
  protocol?: Protocol;
}

const linesMax = 5;
/** A server says something every 15 s; one that is paused says nothing. */
const silenceMs = 20_000;
const catchUpMs = 60_000;
const kinds = { created: Change.CREATED, updated: Change.UPDATED, closed: Change.CLOSED };
const stateText = ({ severity, status, acknowledged }: FeedChange["after"]) => `${severity} ${status} ${acknowledged}`;

/** A change in one line, as it was reported. */
function told({ change, event }: WatchEventsResponse): string {
  const occurrence = event?.occurrences[0];
  if (occurrence === undefined) throw new Error("a change without an occurrence");
  const { id, lastSeen, instanceCount } = occurrence;
  return `${id} ${change} ${stateText(occurrence as FeedChange["after"])} ${lastSeen} ${instanceCount}`;
}

/** The same as it is stored. */
function kept({ eventId, number, kind, after, lastSeenMs, instanceCount }: FeedChange): string {
  return `${occurrenceIdText(eventId, number)} ${kinds[kind]} ${stateText(after)} ${lastSeenMs} ${instanceCount}`;
}

/** Begins to watch. The first cursor is that of the feed as it is when this resolves. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const { name, seed, urls, headers, severities, protocol = "grpc" } = options;
  const choose: Random = random(seed);
  const end = new AbortController();
  const clients = urls.map((url) => createClient(EventQueryService, transport({ url }, protocol, headers)));
  /** Since the last comparison that found nothing wrong. */
  let seen: string[] = [];
  /** The place in the feed of the last row that was compared: old rows are removed. */
  let comparedTo = -1n;
  const lastOf = new Map<string, FeedChange>();
  const begun = Promise.withResolvers<void>();
  let cursor = "";
  let resumed = -1;
  let failure: unknown;

  async function follow() {
    const quiet = new AbortController();
    let timer = setTimeout(() => quiet.abort(), silenceMs);
    const signal = AbortSignal.any([end.signal, quiet.signal]);
    try {
      for await (const message of choose
        .pick(clients)
        .watchEvents({ query: { severities: [...severities] }, cursor }, { signal })) {
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), silenceMs);
        if (message.event !== undefined) seen.push(told(message));
        cursor = message.cursor;
        begun.resolve();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async function run() {
    while (!end.signal.aborted) {
      resumed += 1;
      try {
        await follow();
      } catch (error) {
        const { code } = ConnectError.from(error);
        // A cursor that is refused would be a change that is lost.
        if (code === Code.InvalidArgument || code === Code.Unauthenticated || code === Code.Internal) throw error;
      }
      await sleep(20 + choose.next() * 80);
    }
  }
  run().catch((error) => {
    failure = error;
    begun.reject(error);
  });
  await begun.promise;

  async function stored(db: Db, tenantId: string): Promise<{ changes: FeedChange[]; to: bigint }> {
    const rows = await db<{ position: bigint; changes: Buffer }[]>`
      select position, changes from feed where tenant_id = ${tenantId} and position > ${comparedTo} order by position`;
    const wanted = (severity: number | undefined) =>
      severity !== undefined && (severities.length === 0 || severities.includes(severity as Severity));
    const changes = rows
      .flatMap(({ changes }) => decodeChanges(changes, null))
      .filter(({ before, after }) => wanted(before?.severity) || wanted(after.severity));
    return { changes, to: rows.at(-1)?.position ?? comparedTo };
  }

  return {
    get resumed() {
      return resumed;
    },
    async compare(db, tenantId) {
      const { changes, to } = await stored(db, tenantId);
      const endMs = performance.now() + catchUpMs;
      while (seen.length < changes.length && performance.now() < endMs && failure === undefined) await sleep(20);
      if (failure !== undefined) return [`${name}: ${(failure as Error).message}`];
      const expected = changes.map(kept);
      const first = expected.findIndex((line, i) => line !== seen[i]);
      if (first >= 0 || seen.length !== expected.length) {
        const at = first < 0 ? expected.length : first;
        return [
          `${name} saw ${seen.length} changes, ${expected.length} are stored; from place ${at} on it saw`,
          ...seen.slice(at, at + linesMax),
          "and these are stored",
          ...expected.slice(at, at + linesMax),
        ];
      }
      seen = [];
      comparedTo = to;
      if (severities.length > 0) return [];
      for (const change of changes) lastOf.set(occurrenceIdText(change.eventId, change.number), change);
      return await compareLast(db, tenantId, lastOf, name);
    },
    stop: () => end.abort(),
  };
}

/** What was told last of each occurrence is what its row says. */
async function compareLast(
  db: Db,
  tenantId: string,
  last: ReadonlyMap<string, FeedChange>,
  name: string,
): Promise<string[]> {
  const rows = await db<{ id: Buffer; number: number; state: string }[]>`
    select event_id as id, number, concat_ws(' ', severity, status, acknowledged::text, last_seen_ms, instance_count) as state
    from occurrences where tenant_id = ${tenantId}`;
  return rows
    .flatMap(({ id, number, state }) => {
      const key = occurrenceIdText(id, number);
      const change = last.get(key);
      const seen = change && `${stateText(change.after)} ${change.lastSeenMs} ${change.instanceCount}`;
      return seen === state ? [] : [`${name}: occurrence ${key} is ${state}, and was told last as ${seen}`];
    })
    .slice(0, linesMax);
}
