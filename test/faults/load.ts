import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { protocols } from "../support/clients.ts";
import type { Batch, Ledger, SentModel } from "./ledger.ts";
import { type Random, random } from "./random.ts";
import { type Way, wayTo } from "./ways.ts";

const dayMs = 86_400_000;

/** Clients that send, and send again until they hear that all was taken. */
export interface Load {
  /** Good answers to each client so far. */
  readonly answers: readonly number[];
  /** Answers that were no good one: how many of each code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Lets them send until `stop`. */
  go(): void;
  /** Resolves when each has its last batch acknowledged. @throws when one gets nowhere for `patienceMs`. */
  stop(patienceMs?: number): Promise<void>;
}

interface LoadOptions {
  seed: number;
  clients: number;
  /** Where to send; each attempt picks one. */
  urls: readonly (string | Way)[];
  headers: Record<string, string>;
  ledger: Ledger;
  /** How long a client rests after each good answer, ms; not at all when left out. */
  restMs?: number;
  /** The time of the first items; an hour ago when left out. */
  startMs?: number;
  /** Without keys and expiry of events, which 0.1.0 does not know. */
  asFirstRelease?: boolean;
  /** How long each attempt may take, ms. */
  attemptMs?: number;
}

const usualAttemptMs = 5000;

/** Batches of one client: its own entities, in an order of time that now and then goes back, and shared ones. */
export function batches(
  client: number,
  { int, chance, pick }: Random,
  startMs = Date.now() - 3_600_000,
  asFirstRelease = false,
) {
  let timeMs = BigInt(startMs);
  const recent: EventItem[] = [];
  let n = 0;

  function event(shared: boolean): EventItem {
    // Multiples of 64 and the client's number: no two clients report a shared event with the same instance.
    timeMs += 64n * BigInt(int(0, 3));
    if (!shared && recent.length > 0 && chance(0.05)) return pick(recent);
    const late = chance(0.1) ? 64n * BigInt(int(1, 50)) : 0n;
    const item: EventItem = {
      name: shared ? "shared" : pick(["disk full", "link down", "slow"]),
      dimensions: { source: shared ? `shared ${int(0, 1)}` : `client ${client} host ${int(0, 3)}` },
      timeMs: timeMs - late + BigInt(client),
      severity: int(0, 5),
      status: pick([0, 1, 1, 2, 3]),
      acknowledged: pick([undefined, undefined, true, false]),
      type: "",
      summary: pick(["", "a", "b"]),
      body: "",
      metadata: {},
      ...(!asFirstRelease && chance(0.3) && { dedupKey: pick(["/", "/var"]) }),
      // After all that is played: none is closed by it.
      ...(!asFirstRelease && chance(0.3) && { expiresAtMs: BigInt(Math.ceil(startMs / dayMs + 1) * dayMs) }),
    };
    if (!shared) recent.push(item);
    if (recent.length > 30) recent.shift();
    return item;
  }

  function model(): SentModel {
    timeMs += 64n;
    n += 1;
    return {
      timestampMs: chance(0.1) ? timeMs - 600_000n : timeMs,
      dimensions: { source: `client ${client} host ${int(0, 3)}` },
      metadata: { name: `name ${n}`, n: `${client}/${n}`, ...(chance(0.1) && { _svc_deleted_entity: true }) },
    };
  }

  return (): Batch => {
    const items = int(1, 12);
    if (chance(0.3)) return { kind: "models", shared: false, items: Array.from({ length: items }, model) };
    const shared = chance(0.2);
    return { kind: "events", shared, items: Array.from({ length: items }, () => event(shared)) };
  };
}

/** One attempt. @throws ConnectError, or what fetch throws. */
export type Send = (batch: Batch) => Promise<number>;

/** How the client of this number sends to a server: the protocol goes by the number. */
export function sender(
  client: number,
  url: string | Way,
  headers: Record<string, string>,
  attemptMs = usualAttemptMs,
): Send {
  const way = typeof url === "string" ? wayTo(url) : url;
  const protocol = protocols[client % (protocols.length + 1)];
  if (protocol === undefined) return (batch) => sendJson(way, headers, batch, attemptMs);
  const receiver = createClient(DataReceiverService, way.transport(protocol, headers, client % 2 ? "1.1" : "2"));
  return async (batch) => {
    const options = { timeoutMs: attemptMs };
    if (batch.kind === "models") {
      const models = batch.items.map(({ timestampMs, dimensions, metadata }) => ({
        timestamp: timestampMs,
        dimensions,
        metadataFields: metadata,
      }));
      return (await receiver.putModels({ models }, options)).succeeded;
    }
    const events = batch.items.map(({ timeMs, metadata: _, acknowledged, expiresAtMs, ...rest }) => ({
      timestamp: timeMs,
      ...rest,
      ...(expiresAtMs !== undefined && { expiresAt: expiresAtMs }),
      ...(acknowledged !== undefined && { acknowledged }),
    }));
    return (await receiver.putEvents({ events: events as never }, options)).succeeded;
  };
}

async function sendJson(way: Way, headers: Record<string, string>, batch: Batch, attemptMs: number): Promise<number> {
  const items =
    batch.kind === "models"
      ? batch.items.map(({ timestampMs, dimensions, metadata }) => ({
          timestamp: `${timestampMs}`,
          dimensions,
          metadataFields: metadata,
        }))
      : batch.items.map(({ timeMs, metadata: _, expiresAtMs, ...rest }) => ({
          timestamp: `${timeMs}`,
          ...rest,
          ...(expiresAtMs !== undefined && { expiresAt: `${expiresAtMs}` }),
        }));
  const response = await way.fetch(`/v1/data-receiver/${batch.kind}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ [batch.kind]: items }),
    signal: AbortSignal.timeout(attemptMs),
  });
  const answer = (await response.json()) as { succeeded: number; code: number; message: string };
  if (!response.ok) throw new ConnectError(answer.message, answer.code);
  return answer.succeeded;
}

/** What a refusal is counted under; one that no retry mends is thrown on. */
function nameOf(error: unknown): string {
  if (!(error instanceof ConnectError)) return (error as Error).name;
  if (error.code === Code.InvalidArgument || error.code === Code.Unauthenticated) throw error;
  return `${Code[error.code]}: ${error.rawMessage}`;
}

export function load({
  seed,
  clients,
  urls,
  headers,
  ledger,
  restMs,
  startMs,
  asFirstRelease,
  attemptMs,
}: LoadOptions): Load {
  const answers = Array.from({ length: clients }, () => 0);
  const refusals = new Map<string, number>();
  const stuck = Array.from({ length: clients }, () => "");
  let going = false;
  let running: Promise<unknown> = Promise.resolve();
  const loops = answers.map((_, client) => {
    const choose = random(seed, client + 1);
    const next = batches(client, choose, startMs, asFirstRelease);
    const senders = urls.map((url) => sender(client, url, headers, attemptMs));
    const retry = random(seed, client + 1001);
    return async () => {
      while (going) {
        const batch = next();
        ledger.sent(batch);
        for (;;) {
          try {
            const succeeded = await retry.pick(senders)(batch);
            if (succeeded !== batch.items.length) throw new Error(`${succeeded} of ${batch.items.length} taken`);
            break;
          } catch (error) {
            stuck[client] = nameOf(error);
            refusals.set(stuck[client], (refusals.get(stuck[client]) ?? 0) + 1);
            await sleep(20 + retry.next() * 60);
          }
        }
        ledger.acknowledged(batch);
        answers[client] = (answers[client] ?? 0) + 1;
        if (restMs !== undefined) await sleep(restMs);
      }
    };
  });
  return {
    answers,
    refusals,
    go() {
      going = true;
      running = Promise.all(loops.map((loop) => loop()));
      running.catch(() => undefined);
    },
    async stop(patienceMs = 60_000) {
      going = false;
      const late = sleep(patienceMs, "late", { ref: false });
      if ((await Promise.race([running, late])) === "late") {
        throw new Error(`clients get nowhere for ${patienceMs} ms; last heard: ${stuck.join(" | ")}`);
      }
    },
  };
}
