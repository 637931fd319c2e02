import { setTimeout as sleep } from "node:timers/promises";
import { type DescMessage, fromBinary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type DataReceiverService,
  PutEventsRequestSchema,
  PutMetricsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import type { Buffer } from "./buffer.ts";

/** Sends what waits in the buffer, again and again until it is taken. */
export interface Sender {
  /** There is something new to send. */
  wake(): void;
  /** Replaces the models that are to be sent, before anything else. */
  describe(models: MessageInitShape<typeof ModelSchema>[]): void;
  /** Sends what it can within this time, then ends. Answers whether nothing is left. */
  stop(flushMs: number): Promise<boolean>;
}

interface Options {
  receiver: Client<typeof DataReceiverService>;
  buffer: Buffer;
  /** Longest pause between two tries. */
  pauseMsMax: number;
  log(line: string): void;
}

/** Whether a request will never be taken, however often it is sent. Other codes may come from a proxy on the way, too. */
const isHopeless = (error: ConnectError) => error.code === Code.InvalidArgument;

const batchBytes = 512 * 1024;

const askedMsMax = 3_600_000;

/** How much later the server, or a proxy before it, asks to try again, ms. Undefined: it asks nothing. */
function askedMs(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  if (delay !== undefined) return Math.min(durationMs(delay), askedMsMax);
  const header = error.metadata.get("retry-after");
  if (header === null) return undefined;
  return Math.min((Number(header) || 0) * 1000, askedMsMax); // a date counts as now
}

/** Whether a request is larger than the server takes. A server that has too much to do says when to try again. */
const isTooLarge = (error: ConnectError) => error.code === Code.ResourceExhausted && askedMs(error) === undefined;

/** @throws ConnectError that gives up bytes which are no message, such as those of another version */
function decoded<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  try {
    return fromBinary(schema, bytes);
  } catch (error) {
    throw new ConnectError(`the buffer holds no such message: ${(error as Error).message}`, Code.InvalidArgument);
  }
}

export function startSender({ receiver, buffer, pauseMsMax, log }: Options): Sender {
  const end = new AbortController();
  let stopping = false;
  let models: MessageInitShape<typeof ModelSchema>[] | undefined;
  let news = Promise.withResolvers<void>();
  let failures = 0;
  let bytesMax = batchBytes;

  /** Sends one request. Answers false when there was nothing to send. */
  async function sendNext(): Promise<boolean> {
    if (models !== undefined) {
      const sent = models;
      try {
        const answer = await receiver.putModels({ models: sent, detailedResponse: true }, { signal: end.signal });
        report(answer.failedModels, "models");
      } catch (thrown) {
        giveUp(thrown, `${sent.length} models`);
      }
      if (models === sent) models = undefined;
      return true;
    }
    const batch = buffer.next(bytesMax);
    if (batch === undefined) return false;
    try {
      await put(batch);
      bytesMax = Math.min(batchBytes, Math.ceil(bytesMax * 1.1));
    } catch (thrown) {
      const error = ConnectError.from(thrown);
      if (isTooLarge(error) && batch.records > 1) {
        bytesMax = Math.ceil(batch.bytes.length / 4);
        return true;
      }
      giveUp(error, `${batch.items} ${batch.kind}`);
    }
    batch.done();
    return true;
  }

  /** To try for ever what is never taken would keep everything that comes after it. @throws the error when it may be taken later */
  function giveUp(thrown: unknown, what: string) {
    const error = ConnectError.from(thrown);
    if (!isTooLarge(error) && !isHopeless(error)) throw error;
    log(`${what} are given up, the server refuses them: ${error.message}`);
  }

  async function put({ kind, bytes }: NonNullable<ReturnType<Buffer["next"]>>) {
    if (kind === "events") {
      const request = { ...decoded(PutEventsRequestSchema, bytes), detailedResponse: true };
      report((await receiver.putEvents(request, { signal: end.signal })).failedEvents, kind);
    } else {
      const request = { ...decoded(PutMetricsRequestSchema, bytes), detailedResponse: true };
      report((await receiver.putMetrics(request, { signal: end.signal })).failedMetrics, kind);
    }
  }

  /** Items that the server will not store, for example because they are too old. */
  function report(failed: readonly { error: string }[], what: string) {
    if (failed.length > 0) log(`the server does not take ${failed.length} ${what}; the first one: ${failed[0]?.error}`);
  }

  async function run() {
    while (!end.signal.aborted) {
      try {
        const sent = await sendNext();
        if (failures > 0 && sent) log("the server takes data again; what has waited is sent now");
        if (sent) failures = 0;
        else if (stopping) return;
        else await news.promise;
        if (!sent) news = Promise.withResolvers();
      } catch (error) {
        if (end.signal.aborted) return;
        const reason = ConnectError.from(error);
        if (failures === 0) log(`the server takes no data, it is kept on disk meanwhile: ${reason.message}`);
        failures += 1;
        await sleep(pauseMs(reason, failures), undefined, { signal: end.signal }).catch(() => undefined);
      }
    }
  }

  /** How long to wait: longer and longer, not at the same moment as others, and at least as long as the server asks for. */
  function pauseMs(error: ConnectError, tries: number): number {
    const grownMs = Math.min(pauseMsMax, 250 * 2 ** Math.min(tries, 20));
    return Math.max(askedMs(error) ?? 0, grownMs * (0.5 + Math.random() / 2));
  }

  const running = run();
  return {
    wake: () => news.resolve(),
    describe(described) {
      models = described;
      news.resolve();
    },
    async stop(flushMs) {
      stopping = true;
      news.resolve();
      const timer = setTimeout(() => end.abort(), flushMs);
      await running;
      clearTimeout(timer);
      return buffer.next(1) === undefined;
    },
  };
}
