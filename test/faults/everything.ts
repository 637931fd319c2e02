import { readFileSync, statfsSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, createKey, createTenant } from "../../src/auth/issue.ts";
import { connectOnce, type Db, type Sql } from "../../src/db/connect.ts";
import { startEmbedded } from "../../src/db/embedded/embedded.ts";
import { migrate } from "../../src/db/migrate.ts";
import { httpReceiver } from "../support/receivers.ts";
import { type Ledger, ledger } from "./ledger.ts";
import { type Load, load } from "./load.ts";
import { checkArrivals, drained, noting, post, startRule } from "./notifications.ts";
import { clear, place } from "./place.ts";
import { type Book, comparePoints, senders } from "./points.ts";
import { openProxy } from "./proxy.ts";
import { type Random, random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { actsOfTwo, looking, type Play } from "./scenes.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { putEntities } from "./updaters.ts";
import { startWatcher, type Watcher } from "./watchers.ts";

const MiB = 1024 * 1024;
const hourMs = 3_600_000;
/** A disk that is smaller is filled in one of the acts: FAULTS_DIR, such as a tmpfs of 2 GiB. */
const smallDiskBytes = 8 * 1024 * MiB;
const severitiesWatched = [[], [3, 4]] as const;

type Headers = Record<string, string>;
interface Tenant {
  id: string;
  agent: Headers;
  manager: Headers;
}

async function newTenant(sql: Sql, name: string): Promise<Tenant> {
  const { id } = await createTenant(sql, name);
  const keyOf = async (type: "USER" | "DATA_INGEST", role: "manager" | null): Promise<Headers> => {
    const client = await createClient(sql, id, { name: type, type, role });
    const { text } = await createKey(sql, id, client.id, { description: "", expiresMs: null });
    return { "service-api-key": text };
  };
  return { id, agent: await keyOf("DATA_INGEST", null), manager: await keyOf("USER", "manager") };
}

/** Work that goes on beside the clients of the ledger. Rejects when something is wrong that no fault excuses. */
interface Beside {
  name: string;
  /** One turn of it; `n` counts them. */
  turn(n: number): Promise<void>;
  restMs: number;
}

function startAll(all: readonly Beside[]) {
  let going = true;
  const turns = new Map(all.map(({ name }) => [name, 0]));
  const running = all.map(async ({ name, turn, restMs }) => {
    for (let n = 0; going; n++) {
      await turn(n);
      turns.set(name, n + 1);
      await sleep(restMs);
    }
  });
  const failed: string[] = [];
  for (const one of running) one.catch((error) => failed.push((error as Error).message));
  return {
    failed,
    turns,
    async stop() {
      going = false;
      await Promise.allSettled(running);
    },
  };
}

/** Questions about all parts. Under a fault they may be refused; a fault of ours, or a refusal of the question, is wrong. */
function searches(urls: readonly string[], headers: Headers, { pick }: Random): Beside {
  const lastHour = () => ({ start: String(Date.now() - hourMs), end: String(Date.now()) });
  const range = () => ({ start: new Date(Date.now() - hourMs).toISOString(), end: new Date().toISOString() });
  const questions: (() => [path: string, body: object | undefined])[] = [
    () => ["events:search", { query: { severities: ["SEVERITY_ERROR"], pageInput: { limit: 50 } } }],
    () => ["events:count", { query: {}, fields: [{ field: "severity" }, { field: "status" }] }],
    () => ["events:frequency", { query: { timeRange: lastHour() }, fields: [{ field: "name" }], downsample: "300000" }],
    () => [
      "modelcontext/entities:search",
      { search_input: { query: { clause: { filter: { field: "name", operation: "OP_CONTAINS", value: "host" } } } } },
    ],
    () => [
      "metrics:search",
      {
        entityClause: { filter: { field: "source", operation: "OP_EQUALS", value: "host 1" } },
        timeRange: range(),
        downsample: { aggregator: "MEAN", period: "1m" },
      },
    ],
    () => ["audit-log", undefined],
  ];
  return {
    name: "searches",
    restMs: 50,
    async turn() {
      const [path, body] = pick(questions)();
      const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      const answer = await fetch(`${pick(urls)}/v1/${path}`, {
        ...init,
        headers: { ...headers, "content-type": "application/json" },
        signal: AbortSignal.timeout(20_000),
      }).catch(() => undefined);
      const text = await answer?.text().catch(() => "");
      // An entity that is not there yet is no mistake.
      const excused = path === "metrics:search" && answer?.status === 404;
      if (answer !== undefined && ![200, 429, 503, 504, 409].includes(answer.status) && !excused)
        throw new Error(`${path} answers ${answer.status}: ${text}`);
    },
  };
}

/** Events that a rule sends on, one after the other. */
function notifying(urls: readonly string[], headers: Headers): Beside & { readonly sent: number } {
  let sent = 0;
  return {
    name: "notifications",
    restMs: 100,
    get sent() {
      return sent;
    },
    async turn(n) {
      const event = {
        name: `disk ${n}`,
        timestamp: String(Date.now()),
        dimensions: { source: `host ${n % 50}` },
        severity: "SEVERITY_ERROR",
        status: "STATUS_OPEN",
      };
      await post([urls[n % 2] as string, urls[(n + 1) % 2] as string], headers, "data-receiver/events", {
        events: [event],
      });
      sent = n + 1;
    },
  };
}

/** Windows of some seconds, over entities that they share. */
function windows(urls: readonly string[], headers: Headers, { int, pick }: Random): Beside {
  return {
    name: "windows",
    restMs: 500,
    async turn(n) {
      const clause = { filter: { field: "source", operation: "OP_EQUALS", value: `host ${int(0, 49)}` } };
      const schedule = { start: Date.now() + int(1000, 3000), duration: int(1000, 6000) };
      const specification = { name: `window ${n}`, schedule, maintenanceState: 300, query: { clause } };
      const answer = await fetch(`${pick(urls)}/v1/modelcontext/maintwindows`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ specification }),
        signal: AbortSignal.timeout(10_000),
      }).catch(() => undefined);
      const text = await answer?.text().catch(() => "");
      // A server that was paused reads it late.
      if (answer?.status === 400 && !text?.includes("in the past")) throw new Error(`window ${n}: ${text}`);
    },
  };
}

/** Fills the disk of a directory, for a while; undefined where it is a large one. */
function fullDisk(dataDir: string, { int }: Random): Act | undefined {
  const { blocks, bsize } = statfsSync(dataDir);
  if (blocks * bsize > smallDiskBytes) return undefined;
  return {
    name: "a full disk",
    async run() {
      const file = join(dataDir, "..", "filler");
      try {
        for (const size of [64 * MiB, MiB, 4096]) {
          try {
            for (;;) writeFileSync(file, Buffer.alloc(size), { flag: "a" });
          } catch {
            // Full for this size.
          }
        }
        await sleep(int(500, 4000));
      } finally {
        await rm(file, { force: true });
      }
    },
  };
}

function clockStep(servers: readonly ServerProcess[], { pick, int }: Random): Act {
  return {
    name: "a clock that steps",
    async run() {
      const server = pick(servers);
      await server.arm({ clockShiftMs: pick([-1, 1]) * int(60_000, 2 * hourMs) });
      await sleep(int(500, 3000));
      await server.arm({});
    },
  };
}

/** Memory of a process, MB. */
const memoryMb = (pid: number | undefined) =>
  pid === undefined ? 0 : Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** Whether the later half of what was seen lies clearly above the earlier one. */
function grown(seen: readonly number[]): string[] {
  if (seen.length < 40) return [];
  const [before, after] = [median(seen.slice(10, seen.length >> 1)), median(seen.slice(seen.length >> 1))];
  return after > before * 1.25 ? [`memory grows: ${before.toFixed(0)} MB, then ${after.toFixed(0)} MB`] : [];
}

/** In the end no job waits that is due, fails or is leased, and no window has left anything behind. */
async function leftOver(db: Db, withinMs: number): Promise<string[]> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const jobs = await db<{ kind: string; jobs: number }[]>`
      select kind, count(*)::int4 as jobs from jobs
      where failures > 0 or lease_until_ms > ${BigInt(Date.now())} or due_ms < ${BigInt(Date.now() - 5000)} group by kind`;
    const [rest] = await db<{ open: number; members: number; targets: number; states: number }[]>`
      select (select count(*)::int4 from maintenance_windows where run_state <> 2) as open,
        (select count(*)::int4 from maintenance_members) as members,
        (select count(*)::int4 from maintenance_targets) as targets,
        (select count(*)::int4 from entities where window_production_state is not null) as states`;
    const wrong = [
      ...jobs.map(({ kind, jobs: count }) => `${count} jobs of ${kind} are left`),
      ...Object.entries(rest ?? {}).flatMap(([what, count]) =>
        count > 0 ? [`windows: ${count} ${what} are left`] : [],
      ),
    ];
    if (wrong.length === 0 || performance.now() > endMs) return wrong;
    await sleep(500);
  }
}

function together(clients: Load, points: ReturnType<typeof senders>): Load {
  return {
    get answers() {
      return [...clients.answers, ...points.answers];
    },
    refusals: clients.refusals,
    go() {
      clients.go();
      points.go();
    },
    async stop(patienceMs) {
      await Promise.all([clients.stop(patienceMs), points.stop()]);
    },
  };
}

function withAll(book: Ledger, points: Book, watchers: readonly Watcher[], failed: readonly string[]): Ledger {
  return {
    ...book,
    async compare(db, tenantId) {
      const stored = await book.compare(db, tenantId);
      const wrongPoints = await comparePoints(db, tenantId, points);
      const seen = await Promise.all(watchers.map((watcher) => watcher.compare(db, tenantId)));
      return [...failed, ...stored, ...wrongPoints, ...seen.flat()];
    },
  };
}

/**
 * Everything at once: events, models and points that clients send to two servers on one PostgreSQL, watches, searches,
 * rules that notify, windows; and everything that goes wrong: kills, pauses, cut connections, a bad way, clocks that step,
 * and a full disk where FAULTS_DIR is a small one. After each act what is stored equals what was acknowledged and what the
 * watches saw; in the end all notifications have arrived, and nothing is left over. @throws what is not so
 */
export async function playEverything({ seed, until, say }: Play): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const dataDir = await place();
  stack.defer(() => clear(dataDir));
  const postgres = await startEmbedded({ dataDir, log: { info() {}, warn() {}, error: console.error } });
  stack.defer(() => postgres.stop("immediate"));
  await migrate(postgres.url);
  const db = looking(postgres.url);
  const { sql, close } = connectOnce(postgres.url, "faults");
  const [one, two] = [await newTenant(sql, "one"), await newTenant(sql, "two")];
  await close();

  const ways = [await openProxy(postgres.url, random(seed, 51)), await openProxy(postgres.url, random(seed, 52))];
  for (const way of ways) stack.defer(() => way.close());
  const servers: ServerProcess[] = [];
  for (const way of ways) {
    const ownDir = await place();
    stack.defer(() => clear(ownDir));
    const env = { BELFRY_DATA_DIR: ownDir, DATABASE_URL: way.url, BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" };
    servers.push(await serverProcess(env));
  }
  for (const server of servers) stack.defer(() => server.stop());
  await Promise.all(servers.map((server) => server.start()));
  const urls = servers.map(({ url }) => url);

  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  const arrived = noting(receiver);
  await startRule(urls, two.manager, receiver.url);
  await putEntities(urls[0] as string, two.agent, 0, 50);
  const watchers: Watcher[] = [];
  for (const [i, severities] of severitiesWatched.entries())
    watchers.push(await startWatcher({ name: `watcher ${i}`, seed: seed + i, urls, headers: one.manager, severities }));
  stack.defer(() => watchers.forEach((watcher) => void watcher.stop()));

  const notifications = notifying(urls, two.agent);
  const beside = startAll([
    notifications,
    windows(urls, two.manager, random(seed, 61)),
    searches(urls, one.manager, random(seed, 62)),
    searches(urls, one.manager, random(seed, 63)),
  ]);
  stack.defer(() => beside.stop());

  const choose = random(seed);
  const actsMs: number[] = [];
  const memory: number[] = [];
  const noted = ({ name, run }: Act): Act => ({
    name,
    async run() {
      actsMs.push(performance.now());
      memory.push(Math.max(...servers.map(({ pid }) => memoryMb(pid))));
      await run();
      actsMs.push(performance.now());
    },
  });
  const full = fullDisk(dataDir, choose);
  const acts = [
    ...actsOfTwo(servers, ways, dataDir, choose).acts,
    clockStep(servers, choose),
    ...(full === undefined ? [] : [full]),
    { name: "nothing wrong for a while", run: () => sleep(5000) },
  ].map(noted);
  const points: Book = new Map();
  const book = withAll(ledger(), points, watchers, beside.failed);
  const clients = together(
    load({ seed, clients: 4, urls, headers: one.agent, ledger: book }),
    senders(seed, urls, one.agent, points, false),
  );
  let bag: Act[] = [];
  const plan = () => {
    if (bag.length === 0) bag = [...acts];
    const [act] = bag.splice(choose.int(0, bag.length - 1), 1) as [Act];
    return { act, afterMs: choose.int(20, 400) };
  };
  // A full disk is logged, as it must be, and so are locks of a paused server and what a test has asked for.
  const watched = servers.map((server) => ({
    ...server,
    get complaints() {
      return server.complaints.filter(
        (line) => !/No space left|a fault test asks|canceling statement due to/.test(line),
      );
    },
  }));
  const rounds = { seed, plan, until, load: clients, ledger: book, servers: watched, db, tenantId: one.id, say };
  const played = await runRounds(rounds);

  await beside.stop();
  await drained(db);
  const wrong = [
    ...(await checkArrivals(db, arrived, notifications.sent, actsMs)),
    ...(await leftOver(db, 60_000)),
    ...grown(memory),
    ...watched.flatMap(({ complaints }) => complaints),
  ];
  if (wrong.length > 0) throw new Error(`FAULTS_SEED=${seed}: ${wrong.slice(0, 20).join("\n")}`);
  const turns = [...beside.turns].map(([name, count]) => `${count} ${name}`).join(", ");
  say(`${turns}; a server took ${median(memory).toFixed(0)} MB, at most ${Math.max(...memory).toFixed(0)}`);
  return played;
}
