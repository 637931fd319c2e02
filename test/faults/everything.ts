import { rmSync, statfsSync } from "node:fs";
import { appendFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectOnce, type Db, type Sql } from "../../src/db/connect.ts";
import { startEmbedded } from "../../src/db/embedded/embedded.ts";
import { migrate } from "../../src/db/migrate.ts";
import { httpReceiver } from "../support/receivers.ts";
import { notifying, searches, startAll, windows } from "./beside.ts";
import { estateBeside } from "./estate.ts";
import { diskOf, factsDir, within, writeFacts } from "./facts.ts";
import { type Ledger, ledger } from "./ledger.ts";
import { type Load, load } from "./load.ts";
import { memoryOf } from "./memory.ts";
import { checkArrivals, drained, noting, startRule } from "./notifications.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { type Book, comparePoints, senders } from "./points.ts";
import { openProxy } from "./proxy.ts";
import { type Random, random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { actsOfTwo, looking, type Play } from "./scenes.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { newTenant } from "./stage.ts";
import { putEntities } from "./updaters.ts";
import { startWatcher, type Watcher } from "./watchers.ts";

const MiB = 1024 * 1024;
const hourMs = 3_600_000;
/** A disk that is smaller is filled in one of the acts: FAULTS_DIR, such as a tmpfs of 2 GiB. */
const smallDiskBytes = 8 * 1024 * MiB;
const severitiesWatched = [[], [3, 4]] as const;
/** Points and reports of an hour must fit into the memory of this process, and be compared within it. */
const restMs = { clients: 150, points: 300 };
/** Time before now at which the reports begin; they pass faster than the clock. */
const backMs = 6 * hourMs;
/** A comparison reads all that is stored: another one follows after this many times what it took. */
const restOfComparison = 4;
/** The first server is killed in this part of the time only: then it lives until the end, so that its memory tells a trend. */
const killedPart = 0.25;
const stopMsMax = 120_000;
/** For all that an hour has stored. */
const lastMsMax = 900_000;

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
            const piece = Buffer.alloc(size);
            for (;;) await appendFile(file, piece);
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

export function together(clients: Load, points: ReturnType<typeof senders>): Load {
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

/** Compares all of it; between rounds only when the last comparison lies so far back that most of the time goes into faults. */
export function withAll(
  book: Ledger,
  points: Book,
  watchers: readonly Watcher[],
  failed: readonly string[],
  say: (line: string) => void,
) {
  let nextMs = 0;
  async function compareAll(db: Db, tenantId: string) {
    const startMs = performance.now();
    const stored = await book.compare(db, tenantId);
    const storedMs = performance.now();
    const wrongPoints = await comparePoints(db, tenantId, points);
    const pointsMs = performance.now();
    const seen = await Promise.all(watchers.map((watcher) => watcher.compare(db, tenantId)));
    const endMs = performance.now();
    nextMs = endMs + restOfComparison * (endMs - startMs);
    const took = [storedMs - startMs, pointsMs - storedMs, endMs - pointsMs].map(Math.round);
    say(`compared: items in ${took[0]} ms, points in ${took[1]} ms, watches in ${took[2]} ms`);
    return [...failed, ...stored, ...wrongPoints, ...seen.flat()];
  }
  const sparing: Ledger = {
    ...book,
    compare: async (db, tenantId) => (performance.now() < nextMs ? [...failed] : await compareAll(db, tenantId)),
  };
  return { sparing, compareAll };
}

/** In the end no job waits that is due, fails or is leased, and no window has left anything behind. */
export async function leftOver(db: Db, withinMs: number): Promise<string[]> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const now = BigInt(Date.now());
    const jobs = await db<{ kind: string; jobs: number }[]>`
      select kind, count(*)::int4 as jobs from jobs
      where failures > 0 or lease_until_ms > ${now} or due_ms < ${now - 5000n} group by kind`;
    const work = await db<{ kind: string }[]>`select kind from due_work where due_ms < ${now - 5000n}`;
    const [rest] = await db<{ open: number; members: number; targets: number; states: number }[]>`
      select (select count(*)::int4 from maintenance_windows where run_state <> 2) as open,
        (select count(*)::int4 from maintenance_members) as members,
        (select count(*)::int4 from maintenance_targets) as targets,
        (select count(*)::int4 from entities where window_production_state is not null) as states`;
    const wrong = [
      ...jobs.map(({ kind, jobs: count }) => `${count} jobs of ${kind} are left`),
      ...work.map(({ kind }) => `due work of ${kind} is left`),
      ...Object.entries(rest ?? {}).flatMap(([what, count]) =>
        count > 0 ? [`windows: ${count} ${what} are left`] : [],
      ),
    ];
    if (wrong.length === 0 || performance.now() > endMs) return wrong;
    await sleep(500);
  }
}

/** What servers that have stopped in order still hold. */
async function leasesLeft(db: Db): Promise<string[]> {
  const held = await db<{ what: string; count: number }[]>`
    select 'leases' as what, count(*)::int4 as count from leases
    union all select 'leased jobs', count(*)::int4 from jobs where lease_until_ms > ${BigInt(Date.now())}
    union all select 'deliveries', count(*)::int4 from due_deliveries`;
  return held.flatMap(({ what, count }) =>
    count > 0 ? [`${count} ${what} are left when the servers have stopped`] : [],
  );
}

/**
 * Everything at once: events, models and points that clients send to two servers on one PostgreSQL, an estate that reports
 * its events, watches, searches, rules that notify, windows; and everything that goes wrong: kills, pauses, cut connections, a bad way, clocks that step,
 * and a full disk where FAULTS_DIR is a small one. Between the acts what is stored equals what was acknowledged and what
 * the watches saw; in the end all notifications have arrived, those of the estate as a model decides them, memory has not grown, and nothing is left over.
 * @throws what is not so; then the servers' logs and how things stood lie in a folder that is told
 */
export async function playEverything(play: Play): Promise<number> {
  const { seed, say } = play;
  await using stack = new AsyncDisposableStack();
  const facts = factsDir();
  say(`seed ${seed}; logs in ${facts}`);
  const dataDir = await clusterPlace();
  stack.defer(() => clear(dataDir));
  const postgres = await startEmbedded({ dataDir, log: { info() {}, warn() {}, error: console.error } });
  stack.defer(() => postgres.stop("immediate"));
  await migrate(postgres.url);
  const db = looking(postgres.url);
  try {
    const played = await playOn(play, { stack, facts, dataDir, url: postgres.url, db });
    rmSync(facts, { recursive: true });
    return played;
  } catch (error) {
    // Now, and not only when everything has been stopped, which may hang as well.
    say((error as Error).message);
    setTimeout(() => process.exit(1), 60_000).unref();
    await writeFacts(facts, db, dataDir, (error as Error).message);
    throw new Error(`FAULTS_SEED=${seed}: something is wrong, see above and ${facts}`, { cause: error });
  }
}

interface Stage {
  stack: AsyncDisposableStack;
  facts: string;
  dataDir: string;
  url: string;
  db: Sql;
}

async function twoServers({ stack, facts, url }: Stage, seed: number) {
  const ways = [await openProxy(url, random(seed, 51)), await openProxy(url, random(seed, 52))];
  for (const way of ways) stack.defer(() => way.close());
  const servers: ServerProcess[] = [];
  for (const [i, way] of ways.entries()) {
    const ownDir = await place();
    stack.defer(() => clear(ownDir));
    const env = { BELFRY_DATA_DIR: ownDir, DATABASE_URL: way.url, BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" };
    servers.push(await serverProcess(env, join(facts, `server-${i + 1}.log`)));
  }
  for (const server of servers) stack.defer(() => server.stop());
  await Promise.all(servers.map((server) => server.start()));
  return { ways, servers };
}

/** A full disk is logged, as it must be, and so are locks of a paused server and what a test has asked for. */
const quieter = (server: ServerProcess): ServerProcess => ({
  ...server,
  get complaints() {
    return server.complaints.filter((line) => !/No space left|a fault test asks|canceling statement due to/.test(line));
  },
});

async function playOn({ seed, until, say }: Play, stage: Stage): Promise<number> {
  const { stack, dataDir, url, db } = stage;
  const startMs = performance.now();
  const { sql, close } = connectOnce(url, "faults");
  const [one, two, three] = [await newTenant(sql, "one"), await newTenant(sql, "two"), await newTenant(sql, "three")];
  await close();
  const { ways, servers } = await twoServers(stage, seed);
  const urls = servers.map((server) => server.url);

  const [receiver, estateReceiver] = [await httpReceiver(), await httpReceiver()];
  for (const each of [receiver, estateReceiver]) stack.defer(() => each[Symbol.asyncDispose]());
  const [arrived, estateArrived] = [noting(receiver), noting(estateReceiver)];
  await startRule(urls, two.manager, receiver.url);
  await putEntities(urls[0] as string, two.agent, 0, 50);
  const watchers: Watcher[] = [];
  for (const [i, severities] of severitiesWatched.entries())
    watchers.push(await startWatcher({ name: `watcher ${i}`, seed: seed + i, urls, headers: one.manager, severities }));
  stack.defer(() => watchers.forEach((watcher) => void watcher.stop()));

  const notifications = notifying(urls, two.agent);
  const estate = await estateBeside(three, urls, seed, estateReceiver.url);
  const beside = startAll([
    notifications,
    estate.beside,
    windows(urls, two.manager, random(seed, 61)),
    searches(urls, one.manager, random(seed, 62)),
    searches(urls, one.manager, random(seed, 63)),
  ]);
  stack.defer(() => beside.stop());
  const memory = memoryOf(servers);
  stack.defer(() => memory.stop());

  const points: Book = new Map();
  const { sparing, compareAll } = withAll(ledger(), points, watchers, beside.failed, say);
  const clients = together(
    load({
      seed,
      clients: 4,
      urls,
      headers: one.agent,
      ledger: sparing,
      restMs: restMs.clients,
      startMs: Date.now() - backMs,
    }),
    senders(seed, urls, one.agent, points, { timesAgain: false, restMs: restMs.points, pointsMax: 100 }),
  );
  const told = () => {
    const sent = [...points.values()].reduce((sum, times) => sum + times.size, 0);
    const turns = [...beside.turns].map(([name, count]) => `${count} ${name}`).join(", ");
    return `${sparing.counts.acknowledged} items and ${sent} points acknowledged, ${arrived.length} arrivals; ${estate.told()}; ${turns}; servers take ${memory.now()} MB; ${diskOf(dataDir)}`;
  };
  const minutely = setInterval(
    () => say(`${Math.round((performance.now() - startMs) / 60_000)} min: ${told()}`),
    60_000,
  );
  stack.defer(() => clearInterval(minutely));

  const choose = random(seed);
  const actsMs: number[] = [];
  const noted = ({ name, run }: Act): Act => ({
    name,
    async run() {
      actsMs.push(performance.now());
      await run();
      actsMs.push(performance.now());
    },
  });
  // A try that fails behind its sending is sent again, whenever that is.
  const { acts: usual } = actsOfTwo(servers, ways, dataDir, choose, ["deliveries:sent"]);
  const full = fullDisk(dataDir, choose);
  const acts = [...usual, clockStep(servers, choose), ...(full === undefined ? [] : [full])].map(noted);
  acts.push({ name: "nothing wrong for a while", run: () => sleep(5000) });
  const settledMs = startMs + killedPart * ((until.endMs ?? Infinity) - startMs);
  let bag: Act[] = [];
  const plan = () => {
    const spared = performance.now() > settledMs ? "kill -9 of the first server" : "";
    bag = bag.filter(({ name }) => name !== spared);
    if (bag.length === 0) bag = acts.filter(({ name }) => name !== spared);
    const [act] = bag.splice(choose.int(0, bag.length - 1), 1) as [Act];
    return { act, afterMs: choose.int(20, 400) };
  };
  const watched = servers.map(quieter);
  const rounds = { seed, plan, until, load: clients, ledger: sparing, servers: watched, db, tenantId: one.id, say };
  const played = await runRounds(rounds);

  await within(stopMsMax, () => "the end of what goes on beside", beside.stop());
  await drained(db);
  const wrong = await within(lastMsMax, () => "the last comparison", compareAll(db, one.id));
  wrong.push(...(await estate.compare(db, estateArrived)));
  wrong.push(...(await checkArrivals(db, arrived, notifications.sent, actsMs)), ...(await leftOver(db, 60_000)));
  say(`${told()}; ${memory.longest()}`);
  watchers.forEach((watcher) => void watcher.stop());
  await Promise.all(servers.map((server) => server.stop()));
  wrong.push(...(await leasesLeft(db)), ...memory.grown(), ...watched.flatMap(({ complaints }) => complaints));
  if (wrong.length > 0) throw new Error(wrong.slice(0, 20).join("\n"));
  return played;
}
