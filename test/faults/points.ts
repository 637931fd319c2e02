import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError, createClient } from "@connectrpc/connect";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { connectOnce, type Db } from "../../src/db/connect.ts";
import { dataDirectoryOf, readUrl } from "../../src/embedded/data-directory.ts";
import { stored } from "../metrics/points.ts";
import { protocols } from "../support/clients.ts";
import { clear, clusterPlace } from "./place.ts";
import { killPostgres } from "./postgres-process.ts";
import { random } from "./random.ts";
import { firstTenant, type Play } from "./scenes.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { newTenantAt, ownPostgres, twoServers } from "./stage.ts";
import { type Way, wayTo } from "./ways.ts";

const clients = 4;
const seriesEach = 20;
const usualPointsMax = 400;
const usualAttemptMs = 5000;
/** Points that each client must get answered after a fault. */
const batchesAfter = 4;

type Value = number;
/** What must be there: by metric, the value of each time. */
export type Book = Map<string, Map<number, Value>>;

/** Clients that send points, each of its own series, and again until they hear that all were taken. */
export function senders(
  seed: number,
  urls: readonly (string | Way)[],
  headers: Record<string, string>,
  book: Book,
  /**
   * `timesAgain`: whether a time comes twice. Of two values the last one counts, and a paused server stores late what was
   * sent first. `restMs`: how long a client rests after each good answer. `asFirstRelease`: without labels, which 0.1.0 does not know.
   */
  {
    timesAgain = true,
    asFirstRelease = false,
    restMs = 0,
    pointsMax = usualPointsMax,
    attemptMs = usualAttemptMs,
  } = {},
) {
  const answers = Array.from({ length: clients }, () => 0);
  const refusals: string[] = [];
  let going = false;
  let heard = "";
  let running: Promise<unknown> = Promise.resolve();
  /** Rejects when a client fails, and never resolves. */
  let failed: Promise<never> = new Promise(() => {});
  const baseMs = Date.now() - 3 * 3_600_000;
  const loops = answers.map((_, client) => {
    const choose = random(seed, client + 1);
    const retry = random(seed, client + 1001);
    const ways = urls.map((url) => {
      const way = typeof url === "string" ? wayTo(url) : url;
      return createClient(DataReceiverService, way.transport(protocols[client % protocols.length] as "grpc", headers));
    });
    let n = 0;
    /** Late points, times that were sent before, one series or all: what is answered last counts. */
    function batch() {
      const single = choose.chance(0.2);
      return Array.from({ length: choose.int(1, pointsMax) }, () => {
        n += 1;
        const series = single ? 0 : choose.int(0, seriesEach - 1);
        return {
          metric: `client ${client} metric ${series}`,
          ...(series % 2 === 1 && !asFirstRelease && { labels: { series: `${series}`, client: `${client}` } }),
          timestamp: BigInt(baseMs + (timesAgain ? 1000 * (choose.chance(0.1) ? choose.int(0, 7199) : n % 7200) : n)),
          value: n,
          dimensions: { source: `host ${client}`, zone: "b" },
        };
      });
    }
    return async () => {
      while (going) {
        const metrics = batch();
        for (;;) {
          try {
            const { succeeded } = await retry.pick(ways).putMetrics({ metrics }, { timeoutMs: attemptMs });
            if (succeeded !== metrics.length) throw new Error(`${succeeded} of ${metrics.length} taken`);
            break;
          } catch (error) {
            if (!(error instanceof ConnectError)) throw error;
            heard = error.message;
            refusals.push(heard);
            await sleep(20 + retry.next() * 60);
          }
        }
        for (const { metric, timestamp, value } of metrics) {
          if (!book.has(metric)) book.set(metric, new Map());
          book.get(metric)?.set(Number(timestamp), value);
        }
        answers[client] = (answers[client] ?? 0) + 1;
        if (restMs > 0) await sleep(restMs);
      }
    };
  });
  return {
    /** Good answers to each client so far. */
    answers,
    /** Answers that were no good one. */
    refusals,
    go() {
      going = true;
      running = Promise.all(loops.map((loop) => loop()));
      failed = running.then(() => new Promise<never>(() => {}));
      failed.catch(() => undefined);
    },
    /** Until each client has got on; @throws when one does not. */
    async gotOn() {
      const before = [...answers];
      const late = performance.now() + 60_000;
      while (answers.some((count, client) => count < (before[client] ?? 0) + batchesAfter)) {
        if (performance.now() > late)
          throw new Error(`no service a minute after the fault was mended; last heard: ${heard}`);
        await Promise.race([sleep(10), failed]);
      }
    },
    async stop() {
      going = false;
      await running;
    },
  };
}

/** Reads all points that are stored, head and chunks; returns what is not as it must be, a line each. */
export async function comparePoints(db: Db, tenantId: string, book: Book): Promise<string[]> {
  const nowMs = Date.now();
  const found = await stored(db, tenantId, nowMs - 86_400_000, nowMs + 600_000);
  const wrong: string[] = [];
  for (const [metric, wanted] of book) {
    const got = found[metric] ?? [];
    const times = new Map(got.map(([timeMs, value]) => [timeMs, value]));
    if (times.size !== got.length) wrong.push(`${metric}: ${got.length - times.size} points are there twice`);
    for (const [timeMs, value] of wanted)
      if (times.get(timeMs) !== value)
        wrong.push(`${metric} at ${timeMs}: ${times.get(timeMs)}, acknowledged ${value}`);
    for (const timeMs of times.keys()) if (!wanted.has(timeMs)) wrong.push(`${metric} at ${timeMs}: was never sent`);
  }
  for (const metric of Object.keys(found)) if (!book.has(metric)) wrong.push(`${metric}: was never sent`);
  return wrong.slice(0, 20);
}

/** Waits until something of the head has been merged. */
async function untilMerged(url: string, tenantId: string): Promise<void> {
  const late = performance.now() + 60_000;
  const { sql, close } = connectOnce(url, "ledger");
  try {
    while (performance.now() < late) {
      const merged = await sql`
        select from metric_chunks where tenant_id = ${tenantId}
        union all select from metric_heads where tenant_id = ${tenantId} and level > 0 limit 1`;
      if (merged.count > 0) return;
      await sleep(200);
    }
    throw new Error("nothing is merged");
  } finally {
    await close();
  }
}

interface Round {
  seed: number;
  until: Play["until"];
  say: Play["say"];
  servers: readonly ServerProcess[];
  headers: Record<string, string>;
  tenantId: string;
  url: string;
  /** What goes wrong in a round, and is mended when it resolves. */
  act(round: number): Promise<string>;
}

/** Each round: points come and are merged, something dies in the middle of it, service comes back, all is compared. */
async function playRounds({ seed, until, say, servers, headers, tenantId, url, act }: Round): Promise<number> {
  const book: Book = new Map();
  const load = senders(
    seed,
    servers.map((server) => server.url),
    headers,
    book,
  );
  for (let round = 1; ; round++) {
    if (round > until.rounds || performance.now() > (until.endMs ?? Infinity)) {
      await untilMerged(url, tenantId);
      const { sql, close } = connectOnce(url, "ledger");
      const wrong = await comparePoints(sql, tenantId, book);
      await close();
      if (wrong.length > 0) throw new Error(`SEED=${seed}, after more merging:\n${wrong.join("\n")}`);
      return round - 1;
    }
    load.go();
    await load.gotOn();
    const what = await act(round);
    await load.gotOn();
    await load.stop();
    const { sql, close } = connectOnce(url, "ledger");
    const wrong = [...(await comparePoints(sql, tenantId, book)), ...servers.flatMap(({ complaints }) => complaints)];
    const [state] = await sql<{ heads: number; chunks: number }[]>`
      select (select count(*)::float8 from metric_heads where tenant_id = ${tenantId}) as heads,
        (select count(*)::float8 from metric_chunks where tenant_id = ${tenantId}) as chunks`;
    await close();
    if (wrong.length > 0) throw new Error(`SEED=${seed}, round ${round}, ${what}:\n${wrong.join("\n")}`);
    const points = [...book.values()].reduce((sum, times) => sum + times.size, 0);
    say(`round ${round}: ${what}; ${points} points, ${state?.heads} rows in the head, ${state?.chunks} chunks`);
  }
}

/** Points are acknowledged and merged by one server with its own PostgreSQL; one of them, or both, die by kill -9. */
export async function playPoints({ seed, until, say }: Play): Promise<number> {
  const dataDir = await clusterPlace();
  const server = await serverProcess({ BELFRY_DATA_DIR: dataDir });
  const { int } = random(seed);
  try {
    await server.start();
    const { tenantId, headers } = await firstTenant(dataDir);
    const killServer = async () => {
      await server.kill();
      await server.start();
      return "kill -9 of the server";
    };
    const acts = [
      killServer,
      async () => {
        await killPostgres(dataDir);
        return "kill -9 of PostgreSQL";
      },
      async () => {
        // In the middle of a merge: its step is done, the job that did it is not yet over.
        await server.arm({ points: { "jobs:run": { act: "die", at: int(1, 2) } } });
        await server.ended();
        await server.start();
        return "death in a merge";
      },
      async () => {
        await Promise.all([server.kill(), killPostgres(dataDir)]);
        await server.start();
        return "kill -9 of both";
      },
    ];
    const act = async (round: number) => {
      await sleep(int(20, 1500));
      return await (acts[(round - 1) % acts.length] as () => Promise<string>)();
    };
    const url = (readUrl(dataDirectoryOf(dataDir).urlFile) as URL).href;
    return await playRounds({ seed, until, say, servers: [server], headers, tenantId, url, act });
  } finally {
    await server.stop();
    await clear(dataDir);
  }
}

/** Two servers on one PostgreSQL take the same series' points and merge them; one dies, then the other, now and then both. */
export async function playPointsOfTwo({ seed, until, say }: Play): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const { url } = await ownPostgres(stack);
  const { id: tenantId, agent: headers } = await newTenantAt(url, "faults");
  const servers = await twoServers(stack, [url, url]);
  const { int } = random(seed);
  async function act(round: number) {
    await sleep(int(20, 1500));
    const dying = round % 3 === 0 ? servers : [servers[round % 2] as ServerProcess];
    for (const server of dying) await server.kill();
    for (const server of dying) await server.start();
    return dying.length === 2 ? "kill -9 of both servers" : "kill -9 of one server";
  }
  return await playRounds({ seed, until, say, servers, headers, tenantId, url, act });
}
