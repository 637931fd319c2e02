import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { envelope, transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { program } from "../support/program.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const count = 1000;
const bytesMax = 64 * 1024;
/** Fewer calls at once than there are watches; one key may have most of them. */
const callsMax = 20;
const callsOfOne = 10;

const database = await testDatabase();
const { sql } = database;
const { headers } = await testTenant(sql);
const server = await startServer();

interface Memory {
  rss: number;
  /** JavaScript's objects and its buffers, after a collection. */
  heap: number;
}

/** A server in a process of its own, which answers how much memory it takes. */
async function startServer() {
  const tell =
    'process.on("message", () => { gc(); const { rss, heapUsed, external } = process.memoryUsage(); ' +
    "process.send({ rss, heap: heapUsed + external }); }); process.channel.unref();";
  const child = spawn(
    process.execPath,
    [
      // As start.js sets it.
      "--max-semi-space-size=16",
      "--expose-gc",
      "--import",
      `data:text/javascript,${encodeURIComponent(tell)}`,
      await program(),
      "serve",
    ],
    {
      env: {
        PATH: process.env.PATH,
        MALLOC_ARENA_MAX: "2",
        DATABASE_URL: database.url,
        BELFRY_DATA_DIR: temporaryDir(),
        BELFRY_HOST: "127.0.0.1",
        BELFRY_PORT: "0",
        BELFRY_PLAINTEXT: "1",
        BELFRY_LOG_LEVEL: "error",
        BELFRY_SHUTDOWN_TIMEOUT: "500ms",
        BELFRY_MASTER_KEYS: masterKeys,
        TEST_LIMITS: JSON.stringify({ waitingCallsMax: callsMax }),
      },
      stdio: ["ignore", "pipe", "ignore", "ipc"],
    },
  );
  const exited = once(child, "exit");
  afterAll(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  let said = "";
  child.stdout?.on("data", (text) => {
    said += text;
  });
  while (!/Belfry serves at \S+\s/.test(said)) {
    if (child.exitCode !== null) throw new Error(`the server did not start: ${said}`);
    await sleep(20);
  }
  const url = /Belfry serves at (\S+)/.exec(said)?.[1] ?? "";
  async function memory(): Promise<Memory> {
    await sleep(500); // so that what has ended is freed
    child.send("how much?");
    for (;;) {
      const [answer] = await once(child, "message");
      if (typeof answer === "object") return answer as Memory;
    }
  }
  return { url, memory };
}

interface Way {
  /** Opens this many connections, on each of which nothing is asked. */
  connect(connections: number): Promise<void>;
  /** Begins a watch on the next of them; resolves with the first bytes of its answer. */
  open(): Promise<void>;
  end(): void;
}

const ways: Record<string, () => Way> = {
  "/v1, a connection each"() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
    return {
      connect: async () => undefined, // a socket of HTTP/1.1 asks at once
      async open() {
        const request = http.request(`${server.url}/v1/events:watch`, {
          method: "POST",
          agent,
          headers: { ...headers, "content-type": "application/json", accept: "text/event-stream" },
        });
        request.on("error", () => undefined).end('{"query":{}}');
        const [answer] = await once(request, "response");
        if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
        await once(answer.resume(), "data");
      },
      end: () => agent.destroy(),
    };
  },
  "gRPC, a connection each"() {
    const sessions: http2.ClientHttp2Session[] = [];
    let next = 0;
    return {
      async connect(connections) {
        for (let i = 0; i < connections; i++) {
          const session = http2.connect(server.url).on("error", () => undefined);
          sessions.push(session);
          await once(session, "remoteSettings");
        }
      },
      async open() {
        const stream = (sessions[next++] as http2.ClientHttp2Session).request({
          ...headers,
          ":method": "POST",
          ":path": `/${EventQueryService.typeName}/WatchEvents`,
          "content-type": "application/grpc+proto",
          te: "trailers",
        });
        stream.on("error", () => undefined).end(envelope(new Uint8Array([10, 0])));
        await once(stream, "data");
        stream.resume();
      },
      end() {
        for (const session of sessions) session.destroy();
      },
    };
  },
};

/** How many statements the database has committed, and the connections to it. */
async function databaseUse() {
  await sql`select pg_stat_clear_snapshot()`;
  const [row] = await sql<[{ connections: number; listening: number; transactions: number }]>`
    select (select count(*)::int4 from pg_stat_activity where datname = current_database()) as connections,
      (select count(*)::int4 from pg_stat_activity where datname = current_database() and query ilike 'listen%') as listening,
      (select xact_commit::float8 from pg_stat_database where datname = current_database()) as transactions`;
  return row;
}

async function transactionsIn(ms: number): Promise<number> {
  const before = await databaseUse();
  await sleep(ms);
  return (await databaseUse()).transactions - before.transactions;
}

describe(`${count} idle watches`, () => {
  test.each(Object.keys(ways))(
    "take no place of a call, one listener, no statement each, and less than 64 KiB each: %s",
    async (name) => {
      const way = (ways[name] as () => Way)();
      const receiver = createClient(DataReceiverService, transport(server, "grpc", headers));
      const put = () =>
        receiver.putEvents({
          events: [{ name: "an event", dimensions: { source: "a" }, timestamp: BigInt(Date.now()) }],
        });
      // What the first ones need is needed once; what a connection of HTTP/2 needs is not a watch's.
      await put();
      await way.connect(count + 20);
      for (let i = 0; i < 20; i++) await way.open();
      const before = await server.memory();
      const usedBefore = await databaseUse();
      for (let i = 0; i < count; i += 20) await Promise.all(Array.from({ length: 20 }, way.open));
      await put();
      const after = await server.memory();
      const perWatch = { heap: (after.heap - before.heap) / count, rss: (after.rss - before.rss) / count };
      expect(perWatch.heap).toBeLessThan(bytesMax);
      // What the collector keeps for later is in it, and what malloc has cut up.
      expect(perWatch.rss).toBeLessThan(2 * bytesMax);

      // Calls find places, though there are fewer than watches.
      const calls = await Promise.all(Array.from({ length: callsOfOne }, put));
      expect(calls.map(({ succeeded }) => succeeded)).toEqual(calls.map(() => 1));

      // One look a second for all of them, and what the server does by itself.
      expect(await transactionsIn(3000)).toBeLessThan(count / 2);
      const used = await databaseUse();
      expect(used.listening).toBe(usedBefore.listening);
      expect(used.connections).toBeLessThanOrEqual(usedBefore.connections + callsMax);
      way.end();
    },
  );
});
