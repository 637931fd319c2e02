import { setTimeout as sleep } from "node:timers/promises";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { connectOnce, type Db } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { type Random, random } from "./random.ts";
import type { Play } from "./scenes.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { putEntities } from "./updaters.ts";

/** How many windows start and stop, within what time, and how many are open at the end. */
export interface Size {
  windows: number;
  withinMs: number;
  kills: number;
  /** How late a start or an end may be, ms; a second where it is not given. */
  boundMs?: number;
}

const entities = 60;
const hourMs = 3_600_000;
/** Windows begin this long after the first is created: a busy machine takes seconds to create all. */
const leadMs = 10_000;
const leaseMs = 3000;

interface Planned {
  name: string;
  startMs: number;
  durationMs: number;
  state: number;
  sources: string[];
}

interface Change {
  name: string;
  from: number;
  to: number;
  atMs: number;
}

/** A trigger of the test notes each start and end that is committed, and when. */
async function noteRuns(db: Db): Promise<void> {
  await db.unsafe(`
    create table window_changes (name text, was int, became int, at_ms float8);
    create function note_change() returns trigger language plpgsql as $$ begin
      insert into window_changes
      values (new.name, old.run_state, new.run_state, extract(epoch from clock_timestamp()) * 1000);
      return null;
    end $$;
    create trigger note_change after update on maintenance_windows for each row
      when (old.run_state <> new.run_state) execute function note_change()`);
}

/**
 * Windows start and stop on two servers, which are killed by turns meanwhile. Each start and each end happens once, within
 * a second of its time, or as soon as the lease of a server that was killed has ended; in the end every entity has the
 * state of the window that started last of those that are open, else its own. @throws what is not so
 */
export async function playWindowsOf({ seed, say }: Pick<Play, "seed" | "say">, size: Size): Promise<void> {
  const chosen = random(seed);
  const quiet = { info() {}, warn() {}, error: console.error };
  const dataDir = await clusterPlace();
  const dirs = [dataDir, await place(), await place()];
  const postgres = await startEmbedded({ dataDir, log: quiet });
  await migrate(postgres.url);
  const { sql, close } = connectOnce(postgres.url, "windows");
  const servers: ServerProcess[] = [];
  try {
    const tenant = await createTenant(sql, "windows");
    const client = await createClient(sql, tenant.id, { name: "manager", type: "USER", role: "manager" });
    const { text } = await createKey(sql, tenant.id, client.id, { description: "", expiresMs: null });
    const headers = { "service-api-key": text };
    for (const ownDir of dirs.slice(1)) {
      servers.push(
        await serverProcess({
          BELFRY_DATA_DIR: ownDir,
          DATABASE_URL: postgres.url,
          TEST_LIMITS: JSON.stringify({ jobLeaseMs: leaseMs }),
        }),
      );
    }
    await Promise.all(servers.map((server) => server.start()));
    await putEntities(servers[0]?.url ?? "", headers, 0, entities);
    await noteRuns(sql);
    const plan = planOf(chosen, size);
    const lag = watchLag();
    await Promise.all(plan.map((window, i) => create(servers[i % 2]?.url ?? "", headers, tenant.id, window)));
    const endMs = Math.max(...plan.map(({ startMs, durationMs }) => startMs + Math.min(durationMs, size.withinMs)));
    const killedMs = await killByTurns(servers, chosen, size, endMs);
    await sleep(Math.max(0, endMs - Date.now()));
    await settled(sql, plan, endMs);
    const changes = await sql<
      Change[]
    >`select name, was as "from", became as "to", at_ms as "atMs" from window_changes`;
    const lagMs = lag.stop();
    const wrong = [
      ...wrongChanges(plan, endMs, changes, killedMs, (size.boundMs ?? 1000) + lagMs),
      ...(await wrongStates(sql, plan, endMs)),
      ...servers.flatMap(({ complaints }) => complaints),
    ];
    if (wrong.length > 0) throw new Error(`seed ${seed}, kills at ${killedMs}:\n${wrong.slice(0, 20).join("\n")}`);
    const late = latenessOf(plan, changes).sort((a, b) => a - b);
    const told = `median ${late[Math.floor(late.length / 2)]?.toFixed()} ms late, at most ${late.at(-1)?.toFixed()} ms`;
    say(`${plan.length} windows, ${killedMs.length} kills: ${told}; this process ran up to ${lagMs.toFixed()} ms late`);
  } finally {
    for (const server of servers) await server.stop();
    await close();
    await postgres.stop("immediate");
    for (const dir of dirs) await clear(dir);
  }
}

/** One in ten stays open. */
function planOf({ int, chance }: Random, { windows, withinMs }: Size): Planned[] {
  const beginMs = Date.now() + leadMs;
  return Array.from({ length: windows }, (_, i) => {
    const first = int(0, entities - 5);
    const startMs = beginMs + int(0, withinMs * 0.8);
    return {
      name: `window ${i}`,
      startMs,
      durationMs: chance(0.1) ? hourMs : int(500, withinMs * 0.2),
      state: 100_000 + i,
      sources: Array.from({ length: int(1, 5) }, (_, k) => `host ${first + k}`),
    };
  });
}

async function create(url: string, headers: Record<string, string>, tenantId: string, window: Planned) {
  const { name, startMs, durationMs, state, sources } = window;
  const ids = sources.map((source) => idText(entityId(tenantId, { source })));
  const specification = {
    name,
    schedule: { start: startMs, duration: durationMs },
    maintenanceState: state,
    withIds: { ids },
  };
  const answer = await fetch(`${url}/v1/modelcontext/maintwindows`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ specification }),
  });
  if (answer.status !== 200) throw new Error(`${name}: ${await answer.text()}`);
}

const points = ["jobs:claimed", "jobs:run", "jobs:finished"];

/** Kills one server after the other until then, at any time or at a failpoint of jobs; the other one lives. Returns the times. */
async function killByTurns(
  servers: readonly ServerProcess[],
  { int, pick, chance }: Random,
  size: Size,
  endMs: number,
) {
  const killedMs: number[] = [];
  for (let i = 0; i < size.kills; i++) {
    const pauseMs = size.withinMs / size.kills;
    await sleep(int(pauseMs * 0.5, pauseMs));
    if (Date.now() > endMs) break;
    const server = servers[i % 2] as ServerProcess;
    if (chance(0.5)) {
      // In the middle of a start or an end; a server that comes by no such point soon is killed.
      await server.arm({ points: { [pick(points)]: { act: "die", at: int(1, 4) } } });
      const died = await Promise.race([server.ended().then(() => true), sleep(pauseMs / 2, false)]);
      killedMs.push(Date.now());
      if (!died) await server.kill();
    } else {
      killedMs.push(Date.now());
      await server.kill();
    }
    await server.start();
  }
  return killedMs;
}

/** How late timers of this process were at most: what the machine, not the service, adds. */
function watchLag() {
  let lastMs = performance.now();
  let lagMs = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    lagMs = Math.max(lagMs, nowMs - lastMs - 20);
    lastMs = nowMs;
  }, 20);
  return {
    stop() {
      clearInterval(timer);
      return lagMs;
    },
  };
}

/** Waits until all that is due has happened, and no entity is behind. */
async function settled(db: Db, plan: readonly Planned[], endMs: number): Promise<void> {
  const ended = plan.filter(({ startMs, durationMs }) => startMs + durationMs <= endMs).length;
  const untilMs = performance.now() + 60_000;
  for (;;) {
    const [{ over, open, busy }] = await db<[{ over: number; open: number; busy: number }]>`
      select (select count(*)::int4 from maintenance_windows where run_state = 2) as over,
        (select count(*)::int4 from maintenance_windows where run_state = 1) as open,
        (select count(*)::int4 from jobs where kind = 'maintenance.members') as busy`;
    if (over >= ended && over + open >= plan.length && busy === 0) return;
    if (performance.now() > untilMs) return;
    await sleep(50);
  }
}

const dueOf = ({ startMs, durationMs }: Planned, to: number) => (to === 1 ? startMs : startMs + durationMs);

function latenessOf(plan: readonly Planned[], changes: readonly Change[]): number[] {
  const byName = new Map(plan.map((window) => [window.name, window]));
  return changes.map(({ name, to, atMs }) => atMs - dueOf(byName.get(name) as Planned, to));
}

function wrongChanges(
  plan: readonly Planned[],
  endMs: number,
  changes: readonly Change[],
  killedMs: readonly number[],
  lateMsMax: number,
): string[] {
  const wrong: string[] = [];
  for (const window of plan) {
    const mine = changes.filter(({ name }) => name === window.name);
    const ends = window.startMs + window.durationMs <= endMs;
    const steps = mine.map(({ from, to }) => `${from} to ${to}`).join(", ");
    const right = steps === (ends ? "0 to 1, 1 to 2" : "0 to 1");
    // The lease of a server that was to start it outlasted it: a window that is over is not run.
    const { startMs, durationMs } = window;
    const over = startMs + durationMs;
    const missed = killedMs.some((ms) => ms >= startMs - lateMsMax && ms <= over && ms + leaseMs + lateMsMax >= over);
    if (!right && !(ends && missed && steps === "0 to 2")) wrong.push(`${window.name} went from ${steps || "nothing"}`);
    for (const { to, atMs } of mine) {
      const dueMs = dueOf(window, to);
      // A server that was killed may have had it in its hands.
      const leases = killedMs.filter((ms) => ms >= dueMs - lateMsMax).map((ms) => ms + leaseMs);
      const untilMs = Math.max(dueMs, ...leases.filter((ms) => ms - leaseMs <= atMs)) + lateMsMax;
      if (atMs < dueMs - 5) wrong.push(`${window.name}: to ${to} ${dueMs - atMs} ms before its time`);
      if (atMs > untilMs) wrong.push(`${window.name}: to ${to} ${atMs - dueMs} ms after its time ${dueMs}`);
    }
  }
  return wrong;
}

async function wrongStates(db: Db, plan: readonly Planned[], endMs: number): Promise<string[]> {
  const open = plan.filter(({ startMs, durationMs }) => startMs + durationMs > endMs);
  const rows = await db<{ source: string; state: number | null }[]>`
    select dimensions ->> 'source' as source, window_production_state::float8 as state from entities`;
  return rows.flatMap(({ source, state }) => {
    const mine = open.filter(({ sources }) => sources.includes(source)).sort((a, b) => b.startMs - a.startMs);
    const expected = mine[0]?.state ?? null;
    const tied = mine.some((each) => each.startMs === mine[0]?.startMs && each.state === state);
    return state === expected || tied ? [] : [`${source} has ${state} instead of ${expected}`];
  });
}

/** For a run of hours: 200 windows within a minute, one after the other. */
export async function playWindows({ seed, until, say }: Play): Promise<number> {
  for (let round = 1; ; round++) {
    if (round > until.rounds || performance.now() > (until.endMs ?? Infinity)) return round - 1;
    await playWindowsOf({ seed: seed + 1000 * round, say }, { windows: 200, withinMs: 60_000, kills: 12 });
  }
}
