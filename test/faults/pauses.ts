import { setTimeout as sleep } from "node:timers/promises";
import { httpReceiver } from "../support/receivers.ts";
import { ledger } from "./ledger.ts";
import { leftOver } from "./left-over.ts";
import { load } from "./load.ts";
import { checkArrivals, drained, noting, post, startRule } from "./notifications.ts";
import { pausePostgres } from "./postgres-process.ts";
import { type Act, runRounds } from "./rounds.ts";
import { looking, type Play } from "./scenes.ts";
import type { ServerProcess } from "./server-process.ts";
import { newTenantAt, ownPostgres, twoServers } from "./stage.ts";
import { startWatcher } from "./watchers.ts";
import { withWatchers } from "./watches.ts";

/** How long everything stands still in each round, and what the servers are started with. */
interface Pauses {
  pauseMs: number;
  env?: Record<string, string>;
}

/** After a pause each server answers again within this time, however long it was. */
const backMsMax = 15_000;
const eventsEach = 40;

/** Statements of a server that stood still reach their bounds of time. */
const quieter = (server: ServerProcess): ServerProcess => ({
  ...server,
  get complaints() {
    return server.complaints.filter((line) => !/canceling statement due to|idle-in-transaction timeout/.test(line));
  },
});

/** Waits until a server stores again. @throws when that takes too long */
async function back(server: ServerProcess, name: string, headers: Record<string, string>): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    const ready = await fetch(`${server.url}/readyz`, { signal: AbortSignal.timeout(backMsMax) }).catch(
      () => undefined,
    );
    const model = { timestamp: `${Date.now()}`, dimensions: { source: "back" }, metadataFields: { name: "back" } };
    const stored = await fetch(`${server.url}/v1/data-receiver/models`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ models: [model] }),
      signal: AbortSignal.timeout(backMsMax),
    }).catch(() => undefined);
    const tookMs = performance.now() - startMs;
    if (ready?.status === 200 && stored?.status === 200) return tookMs;
    if (tookMs > backMsMax)
      throw new Error(`${name}: a server does not serve ${Math.round(tookMs)} ms after the pause`);
    await sleep(50);
  }
}

/**
 * Servers and PostgreSQL are stopped by SIGSTOP and go on by SIGCONT, for longer than every lease, while clients send, watchers watch and
 * rules notify. Nothing acknowledged is lost, nothing is doubled but a notification that was under way, and service is back within seconds.
 * @throws what is not so
 */
export async function playPausesOf({ seed, until, say }: Play, { pauseMs, env = {} }: Pauses): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const { dataDir, url } = await ownPostgres(stack);
  const [one, two] = [await newTenantAt(url, "one"), await newTenantAt(url, "two")];
  const servers = await twoServers(stack, [url, url], { BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8", ...env });
  const urls = servers.map(({ url }) => url);
  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  const arrived = noting(receiver);
  await startRule(urls, two.manager, receiver.url);
  const watcher = await startWatcher({ name: "watcher", seed, urls, headers: one.manager, severities: [] });
  stack.defer(() => watcher.stop());

  let sent = 0;
  async function notify() {
    for (const endAt = sent + eventsEach; sent < endAt; ) {
      const common = { severity: "SEVERITY_ERROR", status: "STATUS_OPEN", dimensions: { source: `host ${sent % 10}` } };
      const events = Array.from({ length: 5 }, () => ({
        name: `disk ${sent++}`,
        timestamp: `${Date.now()}`,
        ...common,
      }));
      await post(urls, two.manager, "data-receiver/events", { events });
      await sleep(pauseMs / eventsEach);
    }
  }
  const pausesMs: number[] = [];
  const paused = (name: string, pause: () => Promise<void>): Act => ({
    name,
    async run() {
      const notifying = notify();
      await sleep(100);
      pausesMs.push(performance.now());
      await pause();
      pausesMs.push(performance.now());
      const backMs = await Promise.all(servers.map((server) => back(server, name, two.agent)));
      say(`${name}: served after ${backMs.map(Math.round).join(" and ")} ms`);
      await notifying;
    },
  });
  const stopped = (some: readonly ServerProcess[]) => async () => {
    for (const server of some) server.pause();
    await sleep(pauseMs);
    for (const server of some) server.resume();
  };
  const acts = [
    paused("a paused server", stopped(servers.slice(0, 1))),
    paused("a paused PostgreSQL", () => pausePostgres(dataDir, pauseMs)),
    paused("both servers paused", stopped(servers)),
    paused("everything paused", async () => {
      await Promise.all([stopped(servers)(), pausePostgres(dataDir, pauseMs)]);
    }),
  ];
  const book = withWatchers(ledger(), [watcher]);
  const clients = load({ seed, clients: 3, urls, headers: one.agent, ledger: book, restMs: 5 });
  const plan = (round: number) => ({ act: acts[(round - 1) % acts.length] as Act, afterMs: 50 });
  const db = looking(url);
  const rounds = {
    seed,
    plan,
    until,
    load: clients,
    ledger: book,
    servers: servers.map(quieter),
    db,
    tenantId: one.id,
    say,
  };
  const played = await runRounds(rounds);

  await drained(db);
  const wrong = await checkArrivals(db, arrived, sent, pausesMs);
  wrong.push(...(await leftOver(db, 60_000)));
  if (wrong.length > 0) throw new Error(`SEED=${seed}: ${wrong.slice(0, 20).join("\n")}`);
  say(`${sent} events that notify, ${arrived.length} arrivals; watches that were resumed: ${watcher.resumed}`);
  return played;
}

/** For 40 s, under the settings that an operator finds. */
export const playPauses = (play: Play): Promise<number> => playPausesOf(play, { pauseMs: 40_000 });
