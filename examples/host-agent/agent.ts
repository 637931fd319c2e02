import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@connectrpc/connect";
import type { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { openBuffer } from "./buffer.ts";
import { describe } from "./entities.ts";
import { pointsOf } from "./points.ts";
import type { Reading } from "./reading.ts";
import { startSender } from "./send.ts";
import { type Limits, thresholds } from "./thresholds.ts";

export interface AgentOptions {
  receiver: Client<typeof DataReceiverService>;
  /** What the machine says now. */
  read(): Promise<Reading>;
  /** What the machine is called, the dimension `source` of all that is sent. */
  source: string;
  intervalMs: number;
  limits: Limits;
  /** Where data wait that could not be sent, and how much room they may take. */
  bufferFolder: string;
  bufferBytesMax: number;
  /** Longest pause between two tries to send. */
  pauseMsMax?: number;
  log(line: string): void;
}

/** How often the entities are described again although nothing of them has changed: they may have been deleted. */
const describeMs = 3_600_000;

/**
 * Reads the machine every interval and sends what it says. Everything goes through the buffer on disk: what was read is sent
 * sooner or later, in its order, unless the buffer overflows. A request that is sent twice changes nothing: points and
 * events keep the time of their reading, by which the server knows them.
 */
export function startAgent({ receiver, read, source, intervalMs, limits, log, ...options }: AgentOptions) {
  const { lost, tell } = losses(log);
  const damaged = (bytes: number) => log(`a file of the buffer is damaged: ${bytes} bytes of it are lost`);
  const buffer = openBuffer(options.bufferFolder, options.bufferBytesMax, lost, damaged);
  const sender = startSender({ receiver, buffer, pauseMsMax: options.pauseMsMax ?? 30_000, log });
  const follow = thresholds(source, limits, join(options.bufferFolder, "open-events.json"));
  const stopping = new AbortController();
  let before: Reading | undefined;
  /** Events that found no room on a full disk. */
  let unsaved: ReturnType<typeof follow.eventsOf> = [];
  /** What is open has changed since it was kept. */
  let unkept = false;
  let described = { text: "", atMs: 0 };

  async function measure() {
    tell();
    const reading = await read();
    const models = describe(source, reading);
    const text = JSON.stringify(models.map(({ dimensions, metadataFields }) => [dimensions, metadataFields]));
    if (text !== described.text || reading.timeMs - described.atMs >= describeMs) {
      described = { text, atMs: reading.timeMs };
      sender.describe(models);
    }
    const seen = follow.eventsOf(reading);
    for (const { name, summary } of seen) log(`${name}: ${summary}`);
    unsaved.push(...seen);
    if (unsaved.length > 0) {
      buffer.addEvents(unsaved);
      unsaved = [];
      unkept = true;
    }
    buffer.addPoints(pointsOf(source, reading, before));
    before = reading;
    sender.wake();
    // Last: where the disk has no room for it, the reading is kept all the same.
    if (unkept) follow.keep();
    unkept = false;
  }

  async function run() {
    while (!stopping.signal.aborted) {
      await measure().catch((error) => log(`this reading is lost: ${error.message}`));
      // On the beat of the clock, so that the points of several machines stand side by side.
      const waitMs = intervalMs - (Date.now() % intervalMs);
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    /** Bytes that wait on disk. */
    bufferBytes: buffer.bytes,
    /** Reads no more, and sends what waits, for at most `flushMs`; the rest stays on disk. Answers whether nothing is left. */
    async stop(flushMs: number): Promise<boolean> {
      stopping.abort();
      await running;
      const all = await sender.stop(flushMs);
      buffer.close();
      tell({ now: true });
      return all;
    },
  };
}

/** Counts what is lost, and says so at once and then once a minute. */
function losses(log: AgentOptions["log"]) {
  const counts = new Map<string, number>();
  let saidMs = 0;
  function tell({ now = false } = {}) {
    if (counts.size === 0 || !(now || Date.now() - saidMs > 60_000)) return;
    for (const [what, items] of counts) log(`the buffer is full: ${items} ${what} are lost, the oldest ones`);
    counts.clear();
    saidMs = Date.now();
  }
  function lost(items: number, what: string) {
    counts.set(what, (counts.get(what) ?? 0) + items);
    tell();
  }
  return { lost, tell };
}
