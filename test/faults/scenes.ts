import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { migrationsDir, outsideMark } from "../../src/db/migrate.ts";
import { dataDirectoryOf, readUrl } from "../../src/embedded/data-directory.ts";
import { ruleTenant } from "../notifications/rule-tenant.ts";
import { failpoints } from "./failpoints.ts";
import { ledger } from "./ledger.ts";
import { load } from "./load.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { killBackend, killPostgres, type Nemesis, nemesisOf } from "./postgres-process.ts";
import type { Faults } from "./preload.ts";
import { fine, openProxy, type Proxy, type Weather } from "./proxy.ts";
import { type Random, random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { newTenantAt, ownPostgres, twoServers } from "./stage.ts";
import { startUpdater } from "./updaters.ts";

/** How long a scene plays, and what it tells meanwhile. */
export interface Play {
  seed: number;
  until: { rounds: number; endMs?: number };
  say(line: string): void;
  /** An earlier version, by its commit, tag or directory, to upgrade from. */
  before?: string | undefined;
  /** Whether servers have the settings that an operator finds, also on a machine that is busy. */
  defaults?: boolean | undefined;
}

const killServer = (server: ServerProcess, faults: () => Faults = () => ({}), name = "server"): Act => ({
  name: `kill -9 of ${name}`,
  async run() {
    await server.kill();
    await server.start(faults());
  },
});

/** The tenant that the first start has made, and the headers of its manager. */
export async function firstTenant(dataDir: string) {
  const { sql, close } = connectOnce((readUrl(dataDirectoryOf(dataDir).urlFile) as URL).href, "ledger");
  const [tenant] = await sql<[{ id: string }]>`select id from tenants`;
  await close();
  const headers = { "service-api-key": readFileSync(join(dataDir, "admin.key"), "utf8").trim() };
  return { tenantId: tenant.id, headers };
}

/** A connection for the ledger that lives for one look: the fault may have ended the last one. */
export function looking(url: string): Sql {
  const look = async (texts: TemplateStringsArray, ...values: unknown[]) => {
    const { sql, close } = connectOnce(url, "ledger");
    try {
      return await sql(texts, ...(values as never[]));
    } finally {
      await close();
    }
  };
  return look as unknown as Sql;
}

/** One server with its own PostgreSQL; either is killed in the middle of the work of 4 clients. */
export async function playKills({ seed, until, say }: Play): Promise<number> {
  const dataDir = await clusterPlace();
  const server = await serverProcess({ BELFRY_DATA_DIR: dataDir });
  try {
    await server.start();
    const { tenantId, headers } = await firstTenant(dataDir);
    const { pick, int } = random(seed);
    const acts: Act[] = [
      killServer(server),
      { name: "kill -9 of PostgreSQL", run: () => killPostgres(dataDir) },
      { name: "kill -9 of a connection's process", run: async () => killBackend(dataDir, pick) },
      {
        name: "kill -9 of both",
        async run() {
          await Promise.all([server.kill(), killPostgres(dataDir)]);
          await server.start();
        },
      },
    ];
    const book = ledger();
    const clients = load({ seed, clients: 4, urls: [server.url], headers, ledger: book });
    const db = looking((readUrl(dataDirectoryOf(dataDir).urlFile) as URL).href);
    // The server and PostgreSQL take turns; now and then it is another act.
    const plan = (round: number) => ({
      act: (round % 5 === 0 ? pick(acts.slice(2)) : acts[round % 2]) as Act,
      afterMs: int(20, 400),
    });
    return await runRounds({ seed, plan, until, load: clients, ledger: book, servers: [server], db, tenantId, say });
  } finally {
    await server.stop();
    await clear(dataDir);
  }
}

/** A rule for all events of a tenant, whose deliveries are due at once; their address is refused. */
async function notifyOfAll(dataDir: string, tenantId: string): Promise<void> {
  const { sql, close } = connectOnce((readUrl(dataDirectoryOf(dataDir).urlFile) as URL).href, "rules");
  const rules = ruleTenant(sql, undefined, tenantId);
  await rules.trigger("all", { greaterAndEquals: { field: "severity", value: { numberVal: 0 } } });
  await rules.destination("d");
  await rules.rule({ name: "all", triggers: ["all"] });
  await close();
}

/** A server dies at each failpoint in turn, at a time that the seed decides, also while it starts. */
export async function playFailpoints({ seed, until, say }: Play): Promise<number> {
  const dataDir = await place();
  const { int, pick } = random(seed);
  const names = failpoints();
  if (names.length === 0) throw new Error("the source has no failpoints");
  const server = await serverProcess({ BELFRY_DATA_DIR: dataDir });
  try {
    // After the first migration; then between the first key's file and its commit.
    const inTransactions = globSync("*.sql", { cwd: migrationsDir }).filter(
      (name) => !readFileSync(join(migrationsDir, name), "utf8").startsWith(outsideMark),
    ).length;
    for (const at of [2, inTransactions]) {
      const dies: Faults = { points: { "transaction:before-commit": { act: "die", at } } };
      const served = await server.start(dies).then(
        () => true,
        () => false,
      );
      if (served) throw new Error("the server came up past its failpoint");
    }
    if (!existsSync(join(dataDir, "admin.key"))) throw new Error("the server did not die at the first key");
    await server.start();
    const { tenantId, headers } = await firstTenant(dataDir);
    // With these models leave jobs and events deliveries, so that the server passes those failpoints, too.
    await startUpdater(server.url, headers, "updater");
    await notifyOfAll(dataDir, tenantId);
    const acts = names.map((name): Act => {
      return {
        name: `die:${name}`,
        async run() {
          // Jobs come seldom.
          await server.arm({ points: { [name]: { act: "die", at: int(1, name.startsWith("jobs:") ? 4 : 12) } } });
          await Promise.race([server.ended(), sleep(60_000)]);
          await server.start();
        },
      };
    });
    const book = ledger();
    const clients = load({ seed, clients: 4, urls: [server.url], headers, ledger: book });
    const db = looking((readUrl(dataDirectoryOf(dataDir).urlFile) as URL).href);
    const plan = (round: number) => ({ act: acts[round - 1] ?? pick(acts), afterMs: 20 });
    const played = await runRounds({
      seed,
      plan,
      until,
      load: clients,
      ledger: book,
      servers: [server],
      db,
      tenantId,
      say,
    });
    const missed = names.filter((name) => played >= names.length && !server.reached.has(name));
    if (missed.length > 0) throw new Error(`the server did not pass the failpoints ${missed.join(", ")}`);
    return played;
  } finally {
    await server.stop();
    await clear(dataDir);
  }
}

/** A server dies at a failpoint of storing, and the other one goes on; nothing happens when it does not pass there within 10 s. */
const dieAt = (name: string, choose: () => ServerProcess, at: () => number, faults: () => Faults): Act => ({
  name: `die:${name} of one of two servers`,
  async run() {
    const server = choose();
    await server.arm({ points: { [name]: { act: "die", at: at() } } });
    const died = await Promise.race([server.ended().then(() => true), sleep(10_000, false)]);
    if (died) await server.start(faults());
    else await server.arm(faults());
  },
});

/** Failpoints that a server passes when it stores data. */
const storing = () => failpoints().filter((name) => /^(transaction|batch|ingest|changes|models):/.test(name));

/** Rounds of two servers until each of its acts has come. */
export const twoServersRounds = () => twoServersActs + storing().length;
const twoServersActs = 7;

const bad: Weather = { delayMsMax: 3, cut: 0.01, cutAfter: 0.01, cutCommit: 0.05 };

/** What goes wrong with two servers on one PostgreSQL, each over its way; and the faults with which one of them starts. */
export function actsOfTwo(
  servers: readonly ServerProcess[],
  ways: readonly Proxy[],
  postgres: Nemesis,
  { pick, int, chance }: Random,
  /** Failpoints that are never failed. */
  spared: readonly string[] = [],
): { acts: Act[]; faults(): Faults } {
  const never = Object.fromEntries(spared.map((name) => [name, { act: "fail" as const, probability: 0 }]));
  const faults = (): Faults => ({ seed: int(1, 1e9), points: { "*": { act: "fail", probability: 0.03 }, ...never } });
  const [one, two] = servers as [ServerProcess, ServerProcess];
  const acts: Act[] = [
    killServer(one, faults, "the first server"),
    killServer(two, faults, "the second server"),
    { name: "kill -9 of PostgreSQL", run: () => postgres.kill() },
    {
      name: "a paused server",
      async run() {
        const server = pick(servers);
        server.pause();
        await sleep(int(300, 6000));
        server.resume();
      },
    },
    { name: "a silent PostgreSQL", run: () => postgres.pause(int(100, 4000)) },
    { name: "cut connections", run: async () => pick(ways).cutAll() },
    {
      name: "a bad way to PostgreSQL",
      async run() {
        for (const way of ways) way.weather = chance(0.7) ? bad : fine;
        await sleep(int(500, 2000));
        for (const way of ways) way.weather = fine;
      },
    },
  ];
  return { acts, faults };
}

/** Two servers on one PostgreSQL, each over a way of its own that delays and cuts. */
export async function playTwoServers({ seed, until, say }: Play): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const { dataDir, url } = await ownPostgres(stack);
  const db = looking(url);
  const { id: tenantId, agent: headers } = await newTenantAt(url, "faults");
  const choose = random(seed);
  const { pick, int } = choose;
  const ways = [await openProxy(url, random(seed, 51)), await openProxy(url, random(seed, 52))] as const;
  for (const way of ways) stack.defer(() => way.close());
  const servers = await twoServers(stack, [ways[0].url, ways[1].url]);
  const { acts, faults } = actsOfTwo(servers, ways, nemesisOf(dataDir), choose);
  const book = ledger();
  const urls = servers.map(({ url }) => url);
  const clients = load({ seed, clients: 5, urls, headers, ledger: book });
  // Each act comes once before one comes twice; then a server dies at each failpoint.
  const dying = storing().map((name) =>
    dieAt(
      name,
      () => pick(servers),
      () => int(1, 12),
      faults,
    ),
  );
  const bags = [acts, dying];
  let bag: Act[] = [];
  const plan = () => {
    if (bag.length === 0) {
      const next = bags.shift() as Act[];
      bags.push(next);
      bag = [...next];
    }
    const [act] = bag.splice(int(0, bag.length - 1), 1) as [Act];
    return { act, afterMs: int(20, 400) };
  };
  const played = await runRounds({
    seed,
    plan,
    until,
    load: clients,
    ledger: book,
    servers,
    db,
    tenantId,
    say,
  });
  say(`cut ${ways.map(({ cuts }) => `${cuts.any} and ${cuts.commits} behind a commit`).join("; ")}`);
  return played;
}
