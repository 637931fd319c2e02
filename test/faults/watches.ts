import { setTimeout as sleep } from "node:timers/promises";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { createClient, createKey, createTenant } from "../../src/auth/issue.ts";
import { connectOnce } from "../../src/db/connect.ts";
import { startEmbedded } from "../../src/db/embedded/embedded.ts";
import { migrate } from "../../src/db/migrate.ts";
import { type Ledger, ledger } from "./ledger.ts";
import { load } from "./load.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { killPostgres } from "./postgres-process.ts";
import { random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { looking, type Play } from "./scenes.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { startWatcher, type Watcher } from "./watchers.ts";

/** The ledger of what was sent, and with it what watchers have seen. */
export function withWatchers(book: Ledger, watchers: readonly Watcher[]): Ledger {
  return {
    ...book,
    async compare(db, tenantId) {
      const stored = await book.compare(db, tenantId);
      const seen = await Promise.all(watchers.map((watcher) => watcher.compare(db, tenantId)));
      return [...stored, ...seen.flat()];
    },
  };
}

/**
 * Two servers on one PostgreSQL, killed, paused and stopped at their failpoints while clients send; watchers go on behind
 * their last cursors on either, and must have seen each change that is stored, once and in order.
 */
export async function playWatches({ seed, until, say }: Play): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const dataDir = await clusterPlace();
  stack.defer(() => clear(dataDir));
  const postgres = await startEmbedded({ dataDir, log: { info() {}, warn() {}, error: console.error } });
  stack.defer(() => postgres.stop("immediate"));
  await migrate(postgres.url);
  const { sql, close } = connectOnce(postgres.url, "watches");
  const tenant = await createTenant(sql, "watches");
  const keyOf = async (type: "USER" | "DATA_INGEST", role: "manager" | null) => {
    const client = await createClient(sql, tenant.id, { name: type, type, role });
    const { text } = await createKey(sql, tenant.id, client.id, { description: "", expiresMs: null });
    return { "service-api-key": text };
  };
  const [agents, users] = [await keyOf("DATA_INGEST", null), await keyOf("USER", "manager")];
  await close();

  const servers: ServerProcess[] = [];
  for (let i = 0; i < 2; i++) {
    const ownDir = await place();
    stack.defer(() => clear(ownDir));
    servers.push(await serverProcess({ BELFRY_DATA_DIR: ownDir, DATABASE_URL: postgres.url }));
  }
  for (const server of servers) stack.defer(() => server.stop());
  await Promise.all(servers.map((server) => server.start()));
  const urls = servers.map(({ url }) => url);

  const watchers: Watcher[] = [];
  const asked: Severity[][] = [[], [], [Severity.WARNING, Severity.ERROR]];
  for (const [i, severities] of asked.entries()) {
    const name = `watcher ${i + 1}`;
    watchers.push(await startWatcher({ name, seed: seed + i, urls, headers: users, severities }));
  }
  stack.defer(() => watchers.forEach((watcher) => void watcher.stop()));

  const { pick, int } = random(seed, 7);
  const [one, two] = servers as [ServerProcess, ServerProcess];
  const kill = (name: string, of: ServerProcess[]): Act => ({
    name: `kill -9 of ${name}`,
    async run() {
      await Promise.all(of.map((server) => server.kill()));
      await Promise.all(of.map((server) => server.start()));
    },
  });
  const dies = (point: string): Act => ({
    name: `die:${point}`,
    async run() {
      const server = pick(servers);
      await server.arm({ points: { [point]: { act: "die", at: int(1, 8) } } });
      await server.ended();
      await server.start();
    },
  });
  const acts: Act[] = [
    kill("one server", [one]),
    // Stored, and told to nobody.
    dies("transaction:committed"),
    { name: "kill -9 of PostgreSQL", run: () => killPostgres(dataDir) },
    kill("both servers", servers),
    dies("changes:told"),
    kill("the other server", [two]),
    {
      name: "a paused server",
      async run() {
        const server = pick(servers);
        server.pause();
        await sleep(int(300, 3000));
        server.resume();
      },
    },
  ];
  const book = withWatchers(ledger(), watchers);
  const clients = load({ seed, clients: 4, urls, headers: agents, ledger: book });
  const plan = (round: number) => ({ act: acts[(round - 1) % acts.length] as Act, afterMs: int(20, 400) });
  const db = looking(postgres.url);
  const rounds = { seed, plan, until, load: clients, ledger: book, servers, db, tenantId: tenant.id, say };
  const played = await runRounds(rounds);
  say(`watches that were resumed: ${watchers.map(({ resumed }) => resumed).join(", ")}`);
  return played;
}
