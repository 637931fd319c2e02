import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService, type PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { estate } from "../load/estate.ts";

/** What watchers are notified and how soon. */
export interface WatchLatency {
  watchers: number;
  messagesPerSec: number;
  /** From the answer of the request that stored a change to its message, ms; a message that is first counts as 0. */
  fromAnswerMs: number[];
  /** From the begin of that request, ms. */
  fromRequestMs: number[];
}

const requestsPerSec = 10;

interface Watched {
  watchers: number;
  changesPerSec: number;
  forMs: number;
  /** The server that is watched, where it is another one. */
  watchedUrl?: string;
}

/** Sends `changesPerSec` reports of an estate for a time, and notes when each of this many watchers is notified. */
export async function watchLatency(
  baseUrl: string,
  key: Record<string, string>,
  { watchers, changesPerSec, forMs, watchedUrl = baseUrl }: Watched,
): Promise<WatchLatency> {
  const transport = (url: string) =>
    createGrpcTransport({
      baseUrl: url,
      interceptors: [
        (next) => (request) => {
          for (const [name, value] of Object.entries(key)) request.header.set(name, value);
          return next(request);
        },
      ],
    });
  const { entities, reports } = estate();
  const from = reports(changesPerSec);
  const receiver = createClient(DataReceiverService, transport(baseUrl));
  // Each report has a time of its own, by which a message names it.
  const baseMs = BigInt(Date.now() - 3_600_000);
  let sent = 0n;
  const times = new Map<bigint, { requestMs: number; answerMs: number | undefined; toldMs: number[] }>();

  const end = new AbortController();
  const following = Array.from({ length: watchers }, async () => {
    const begun = Promise.withResolvers<void>();
    const client = createClient(EventQueryService, transport(watchedUrl));
    const run = async () => {
      for await (const { event } of client.watchEvents({ query: {} }, { signal: end.signal })) {
        begun.resolve();
        const lastSeen = event?.occurrences[0]?.lastSeen;
        if (lastSeen !== undefined) times.get(lastSeen - baseMs)?.toldMs.push(performance.now());
      }
    };
    run().catch((error) => (end.signal.aborted ? undefined : begun.reject(error)));
    await begun.promise;
  });
  await Promise.all(following);

  async function put(events: MessageInitShape<typeof PutEventsRequestSchema>["events"]): Promise<void> {
    for (;;) {
      try {
        await receiver.putEvents({ events: events ?? [] });
        return;
      } catch (error) {
        // As an agent does that is asked to send later.
        if (ConnectError.from(error).code !== Code.ResourceExhausted) throw error;
        await sleep(100);
      }
    }
  }

  async function send(): Promise<void> {
    const events = Array.from({ length: changesPerSec / requestsPerSec }, () => {
      const { entity, atMs: _, ...report } = from.next().value;
      sent += 1n;
      return { ...report, timestamp: baseMs + sent, dimensions: entities[entity]?.dimensions ?? {}, metadata: {} };
    });
    const requestMs = performance.now();
    const own = events.map(({ timestamp }) => timestamp - baseMs);
    for (const each of own) times.set(each, { requestMs, answerMs: undefined, toldMs: [] });
    await put(events);
    const answerMs = performance.now();
    for (const each of own) Object.assign(times.get(each) ?? {}, { answerMs });
  }

  const warmUpMs = 3000;
  const startMs = performance.now();
  const sending: Promise<void>[] = [];
  for (let i = 0; performance.now() - startMs < warmUpMs + forMs; i++) {
    await sleep(Math.max(0, startMs + (i * 1000) / requestsPerSec - performance.now()));
    sending.push(send());
  }
  await Promise.all(sending);
  await sleep(1000);
  end.abort();

  const counted = [...times.values()].filter(({ requestMs }) => requestMs > startMs + warmUpMs);
  const fromAnswerMs = counted.flatMap(({ answerMs = 0, toldMs }) => toldMs.map((ms) => Math.max(0, ms - answerMs)));
  const fromRequestMs = counted.flatMap(({ requestMs, toldMs }) => toldMs.map((ms) => ms - requestMs));
  return { watchers, messagesPerSec: (fromAnswerMs.length * 1000) / forMs, fromAnswerMs, fromRequestMs };
}
