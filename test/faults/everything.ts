import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectOnce, type Db, type Sql } from "../../src/db/connect.ts";
import { httpReceiver } from "../support/receivers.ts";
import { notifying, type Part, searches, startAll, windows } from "./beside.ts";
import { ownCitus } from "./citus-cluster.ts";
import { consolePage } from "./console-page.ts";
import { comingAndGoing, logIn } from "./console-sessions.ts";
import { clockStep, fullDisk } from "./disk-and-clock.ts";
import { estateBeside } from "./estate.ts";
import { expiring } from "./expiring.ts";
import { diskOf, factsDir, within, writeFacts } from "./facts.ts";
import { prometheusBeside } from "./foreign-programs.ts";
import { groupedAndSilenced } from "./grouped-and-silenced.ts";
import { type Ledger, ledger } from "./ledger.ts";
import { leasesLeft, leftOver } from "./left-over.ts";
import { type Load, load } from "./load.ts";
import { memoryOf } from "./memory.ts";
import { checkArrivals, drained, noting, startRule } from "./notifications.ts";
import { opentelemetry } from "./opentelemetry.ts";
import { clear, place } from "./place.ts";
import { type Book, comparePoints, senders } from "./points.ts";
import { type Nemesis, nemesisOf } from "./postgres-process.ts";
import { openProxy } from "./proxy.ts";
import { random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { actsOfTwo, looking, type Play } from "./scenes.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { actsOfServing } from "./serving-acts.ts";
import { newTenant, ownPostgres, type Tenant } from "./stage.ts";
import { putEntities } from "./updaters.ts";
import { startWatcher, type Watcher } from "./watchers.ts";

const hourMs = 3_600_000;
/** The first server is one of several processes. */
const processes = 3;
const severitiesWatched = [[], [3, 4]] as const;
/** Points and reports of an hour must fit into the memory of this process, and be compared within it. */
const restMs = { clients: 150, points: 300 };
/** Time before now at which the reports begin; they pass faster than the clock. */
const backMs = 6 * hourMs;
/** A comparison reads all that is stored: another one follows after this many times what it took. */
const restOfComparison = 4;
/** The first server and its processes are killed in this part of the time only: then they live until the end, so that their memory tells a trend. */
const killedPart = 0.25;
const untilSettled = ["kill -9 of the first server", "kill -9 of a serving process"];
const stopMsMax = 120_000;
/** For all that an hour has stored. */
const lastMsMax = 900_000;

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

/**
 * Everything at once: events, models and points that clients send to two servers on one PostgreSQL, of which the first is one of three processes;
 * an estate that reports its events, watches, also by a session of the console, searches, rules that notify, windows, events that expire, sessions that
 * come and go, groups with silences, a console in a browser, OpenTelemetry's SDK, Prometheus with its alerts and all that it scrapes, Alertmanager; and everything that goes
 * wrong: kills, pauses, cut connections, a bad way, clocks that step, and a full disk where FAULTS_DIR is a small one. Between the acts what is stored
 * equals what was acknowledged and what the watches saw; in the end all notifications have arrived, those of the estate as a model decides them, each
 * part's own ledger agrees, memory has not grown, and nothing is left over.
 * @throws what is not so; then the servers' logs and how things stood lie in a folder that is told
 */
export async function playEverything(play: Play): Promise<number> {
  const { seed, say } = play;
  await using stack = new AsyncDisposableStack();
  const facts = factsDir();
  say(`seed ${seed}; logs in ${facts}`);
  const { TEST_CITUS: citus } = process.env;
  const database = citus ? await ownCitus(stack, citus, random(seed, 53)) : await embedded(stack);
  const db = looking(database.url);
  try {
    const played = await playOn(play, { stack, facts, db, ...database });
    rmSync(facts, { recursive: true });
    return played;
  } catch (error) {
    // Now, and not only when everything has been stopped, which may hang as well.
    say((error as Error).message);
    setTimeout(() => process.exit(1), 60_000).unref();
    await writeFacts(facts, db, database.dataDir, (error as Error).message);
    throw new Error(`SEED=${seed}: something is wrong, see above and ${facts}`, { cause: error });
  }
}

/** A migrated PostgreSQL, as a server of one's own would have it. */
async function embedded(stack: AsyncDisposableStack) {
  const { dataDir, url } = await ownPostgres(stack);
  return { dataDir, url, nemesis: nemesisOf(dataDir) };
}

interface Stage {
  stack: AsyncDisposableStack;
  facts: string;
  dataDir: string;
  nemesis: Nemesis;
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
    const more = { BELFRY_PROCESSES: String(i === 0 ? processes : 1) };
    servers.push(await serverProcess({ ...env, ...more }, join(facts, `server-${i + 1}.log`)));
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

/** What has ledgers of its own: each in tenants that nothing else changes. */
async function partsOf(stack: AsyncDisposableStack, urls: readonly string[], tenants: readonly Tenant[], seed: number) {
  const [toExpire, logsIn, sdk, alerted, byWebhook, shown, grouped] = tenants as [
    Tenant,
    Tenant,
    Tenant,
    Tenant,
    Tenant,
    Tenant,
    Tenant,
  ];
  const exports = opentelemetry(urls, sdk);
  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  stack.defer(() => exports.stop());
  const parts: (Part | undefined)[] = [
    expiring(urls, toExpire, random(seed, 71)),
    comingAndGoing(urls, logsIn, random(seed, 72)),
    exports,
    await prometheusBeside(stack, urls, [alerted, byWebhook]),
    await consolePage(stack, urls, shown, random(seed, 73)),
    await groupedAndSilenced(urls, grouped, receiver, random(seed, 74)),
  ];
  return parts.filter((part) => part !== undefined);
}

async function playOn({ seed, until, say }: Play, stage: Stage): Promise<number> {
  const { stack, dataDir, url, db } = stage;
  const startMs = performance.now();
  const { sql, close } = connectOnce(url, "faults");
  const names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
  const tenants: Tenant[] = [];
  for (const name of names) tenants.push(await newTenant(sql, name));
  const [one, two, three, ...others] = tenants as [Tenant, Tenant, Tenant, ...Tenant[]];
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
  const { headers } = await logIn(urls[0] as string, one.manager["service-api-key"] as string);
  const inBrowser = { name: "the console's watch", seed: seed + 9, urls, headers, protocol: "connect" as const };
  watchers.push(await startWatcher({ ...inBrowser, severities: [] }));
  stack.defer(() => watchers.forEach((watcher) => void watcher.stop()));

  const notifications = notifying(urls, two.agent);
  const estate = await estateBeside(three, urls, seed, estateReceiver.url);
  const parts = await partsOf(stack, urls, others, seed);
  const beside = startAll([
    notifications,
    estate.beside,
    ...parts.map((part) => part.beside),
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
    return `${sparing.counts.acknowledged} items and ${sent} points acknowledged, ${arrived.length} arrivals; ${estate.told()}; ${parts
      .map((part) => part.progress())
      .filter(Boolean)
      .join("; ")}; ${turns}; servers take ${memory.now()} MB; ${diskOf(dataDir)}`;
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
  const { acts: usual } = actsOfTwo(servers, ways, stage.nemesis, choose, ["deliveries:sent"]);
  const full = fullDisk(dataDir, choose);
  const serving = actsOfServing(servers[0] as ServerProcess, processes, choose);
  const acts = [...usual, ...serving, clockStep(servers, choose), ...(full === undefined ? [] : [full])].map(noted);
  acts.push({ name: "nothing wrong for a while", run: () => sleep(5000) });
  const settledMs = startMs + killedPart * ((until.endMs ?? Infinity) - startMs);
  let bag: Act[] = [];
  const plan = () => {
    const left = acts.filter(({ name }) => performance.now() < settledMs || !untilSettled.includes(name));
    bag = bag.filter((act) => left.includes(act));
    if (bag.length === 0) bag = [...left];
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
  for (const part of parts) wrong.push(...(await within(lastMsMax, () => part.beside.name, part.compare(db))));
  wrong.push(...(await checkArrivals(db, arrived, notifications.sent, actsMs)), ...(await leftOver(db, 60_000)));
  say(`${told()}; ${memory.longest()}`);
  watchers.forEach((watcher) => void watcher.stop());
  await Promise.all(servers.map((server) => server.stop()));
  wrong.push(...(await leasesLeft(db)), ...memory.grown(), ...watched.flatMap(({ complaints }) => complaints));
  if (wrong.length > 0) throw new Error(wrong.slice(0, 20).join("\n"));
  return played;
}
