import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "../../src/db/connect.ts";
import { answering, type HttpReceiver, httpReceiver } from "../support/receivers.ts";
import { killPostgres } from "./postgres-process.ts";
import { type Random, random } from "./random.ts";
import { looking, type Play } from "./scenes.ts";
import type { ServerProcess } from "./server-process.ts";
import { newTenantAt, ownPostgres, twoServers } from "./stage.ts";

/** How many events match, and how often a server or PostgreSQL is killed meanwhile. */
export interface Size {
  events: number;
  kills: number;
}

const rule = "page";
const batch = 50;
const drainMs = 90_000;
/** A try that was under way at a kill may have arrived this long before or after it, ms. */
const aroundMs = 5000;

/** Calls /v1 of one of the servers until it answers 200: an event that is sent again counts once. */
export async function post(urls: readonly string[], headers: Record<string, string>, path: string, body: object) {
  for (let attempt = 0; attempt < 600; attempt++) {
    const url = urls[attempt % urls.length] as string;
    const answer = await fetch(`${url}/v1/${path}`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    }).catch(() => undefined);
    if (answer?.status === 200) return await answer.json();
    if (answer !== undefined && answer.status < 500 && answer.status !== 429) {
      throw new Error(`${path} answers ${answer.status}: ${await answer.text()}`);
    }
    await sleep(100);
  }
  throw new Error(`${path}: no answer`);
}

/** A rule that tells a webhook of every event whose name contains `disk`. */
export async function startRule(urls: readonly string[], headers: Record<string, string>, url: string): Promise<void> {
  const clause = { contains: { field: "name", value: "disk" } };
  await post(urls, headers, "notification/triggers", { name: "disks", type: { event: { query: { clause } } } });
  await post(urls, headers, "notification/destinations", { name: "ops", type: { webhook: { url } } });
  const names = { triggerNames: ["disks"], destinationNames: ["ops"] };
  await post(urls, headers, "notification/rules", { name: rule, enabled: true, message: "x", ...names });
}

export interface Arrived {
  id: string;
  event: string;
  atMs: number;
}

async function putEvents(urls: readonly string[], headers: Record<string, string>, count: number): Promise<void> {
  for (let from = 0; from < count; from += batch) {
    const events = Array.from({ length: Math.min(batch, count - from) }, (_, i) => ({
      name: `disk ${from + i}`,
      timestamp: String(Date.now()),
      dimensions: { source: `host ${(from + i) % 100}` },
      severity: "SEVERITY_ERROR",
      status: "STATUS_OPEN",
    }));
    const turn = (from / batch) % urls.length;
    await post([...urls.slice(turn), ...urls.slice(0, turn)], headers, "data-receiver/events", { events });
  }
}

/**
 * Waits until rules have looked at all that is stored, and nothing is left to be sent. What a server of 0.2 has stored it has matched by
 * itself, and leaves to be read by whoever waits for it. @throws when that takes too long
 */
export async function drained(db: Sql): Promise<void> {
  const endMs = performance.now() + drainMs;
  for (;;) {
    const [row] = await db<{ left: number; told: string }[]>`
      with counted (what, count) as (
        select 'rows of the feed', count(*) from feed f
          join feed_cursors c on c.tenant_id = f.tenant_id and f.position > c.position
        where f.facts is not null
        union all select 'deliveries, ' || occasion || ', tries ' || tries || ', due in ' ||
          round((due_ms - extract(epoch from now()) * 1000) / 10000) * 10 || ' s, ' || error, count(*)
        from due_deliveries group by 1
        union all select 'tenants with due deliveries', count(*) from due_work where kind = 'deliveries'
      )
      select coalesce(sum(count), 0)::int4 as left,
        string_agg(count || ' ' || what, '; ') filter (where count > 0) as told from counted`.catch(() => []);
    if (row?.left === 0) return;
    if (performance.now() > endMs) throw new Error(`after ${drainMs} ms are left: ${row?.told}`);
    await sleep(100);
  }
}

export async function checkArrivals(
  db: Sql,
  arrived: readonly Arrived[],
  events: number,
  killsMs: readonly number[],
): Promise<string[]> {
  const wrong: string[] = [];
  const byEvent = Map.groupBy(arrived, ({ event }) => event);
  for (let i = 0; i < events; i++) if (!byEvent.has(`disk ${i}`)) wrong.push(`nothing arrived of disk ${i}`);
  for (const [event, all] of byEvent) {
    if (new Set(all.map(({ id }) => id)).size > 1) wrong.push(`${event} arrived under several ids`);
    const [first] = all;
    const inFlight = killsMs.some((ms) => Math.abs(ms - (first?.atMs ?? 0)) < aroundMs);
    if (all.length > 1 && !inFlight) {
      const times = all.map(({ atMs }) => Math.round(atMs)).join(", ");
      const near = killsMs.filter((ms) => Math.abs(ms - (first?.atMs ?? 0)) < 60_000).map(Math.round);
      wrong.push(`${event} arrived at ${times} ms and was not under way at a kill: ${near.join(", ")} ms`);
    }
  }
  const rows = await db<{ event: string; status: string }[]>`
    select e.name as event, d.status from delivery_history d
    join events e on e.tenant_id = d.tenant_id and e.id = d.event_id where d.rule_name = ${rule}`;
  const recorded = Map.groupBy(rows, ({ event }) => event);
  for (let i = 0; i < events; i++) {
    const statuses = (recorded.get(`disk ${i}`) ?? []).map(({ status }) => status).join(", ");
    const times = (byEvent.get(`disk ${i}`) ?? []).map(({ atMs }) => Math.round(atMs)).join(", ");
    if (statuses !== "SENT") wrong.push(`disk ${i}, which arrived at ${times} ms, is recorded as "${statuses}"`);
  }
  if (rows.length !== events) wrong.push(`${rows.length} deliveries are recorded of ${events} events`);
  return wrong;
}

function acts(servers: readonly ServerProcess[], dataDir: string, { pick }: Random): (() => Promise<void>)[] {
  const again = async (some: readonly ServerProcess[]) => {
    await Promise.all(some.map((server) => server.kill()));
    await Promise.all(some.map((server) => server.start()));
  };
  return [() => again([pick(servers)]), () => again(servers), () => killPostgres(dataDir)];
}

async function opened(stack: AsyncDisposableStack) {
  const { dataDir, url } = await ownPostgres(stack);
  const { manager } = await newTenantAt(url, "faults");
  const servers = await twoServers(stack, [url, url], { BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
  return { dataDir, db: looking(url), servers, headers: manager };
}

export function noting(receiver: HttpReceiver): Arrived[] {
  const arrived: Arrived[] = [];
  receiver.answer((request, response, socket) => {
    const { event } = JSON.parse(request.body) as { event: { name: string } };
    arrived.push({ id: String(request.headers["webhook-id"]), event: event.name, atMs: performance.now() });
    receiver.received.length = 0;
    answering(200)(request, response, socket);
  });
  return arrived;
}

/**
 * Events match a rule on two servers, which are killed meanwhile, one or both, as is PostgreSQL. Every notification
 * arrives; twice, under the same id, only one that was under way at a kill; nothing is left to be sent. @throws what is not so
 */
export async function playNotificationsOf({ seed, say }: Pick<Play, "seed" | "say">, size: Size): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { dataDir, db, servers, headers } = await opened(stack);
  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  const arrived = noting(receiver);
  const urls = servers.map(({ url }) => url);
  await startRule(urls, headers, receiver.url);

  const own = random(seed);
  const all = acts(servers, dataDir, own);
  const killsMs: number[] = [];
  const killing = (async () => {
    for (let i = 0; i < size.kills; i++) {
      const wanted = ((i + 0.5) / (size.kills + 0.5)) * size.events;
      while (arrived.length < wanted) await sleep(5);
      killsMs.push(performance.now());
      await (all[i % all.length] as () => Promise<void>)();
      killsMs.push(performance.now());
    }
  })();
  await Promise.all([putEvents(urls, headers, size.events), killing]);
  await drained(db);
  const wrong = await checkArrivals(db, arrived, size.events, killsMs);
  wrong.push(...servers.flatMap(({ complaints }) => complaints));
  if (wrong.length > 0) throw new Error(`SEED=${seed}: ${wrong.slice(0, 20).join("\n")}`);
  say(`${size.events} events, ${killsMs.length / 2} kills, ${arrived.length} arrivals`);
}

/** 10,000 events with kills, then 20,000 without any fault. */
export async function playNotifications({ seed, say }: Play): Promise<number> {
  await playNotificationsOf({ seed, say }, { events: 10_000, kills: 12 });
  await playNotificationsOf({ seed, say }, { events: 20_000, kills: 0 });
  return 2;
}
