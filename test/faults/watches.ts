import { setTimeout as sleep } from "node:timers/promises";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type Ledger, ledger } from "./ledger.ts";
import { load } from "./load.ts";
import { killPostgres } from "./postgres-process.ts";
import { random } from "./random.ts";
import { type Act, runRounds } from "./rounds.ts";
import { looking, type Play } from "./scenes.ts";
import type { ServerProcess } from "./server-process.ts";
import { newTenantAt, ownPostgres, twoServers } from "./stage.ts";
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
  const { dataDir, url } = await ownPostgres(stack);
  const { id: tenantId, agent: agents, manager: users } = await newTenantAt(url, "watches");
  const servers = await twoServers(stack, [url, url]);
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
    // Stored, and told to no one.
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
  const db = looking(url);
  const rounds = { seed, plan, until, load: clients, ledger: book, servers, db, tenantId, say };
  const played = await runRounds(rounds);
  say(`watches that were resumed: ${watchers.map(({ resumed }) => resumed).join(", ")}`);
  return played;
}
