import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { program } from "../support/program.ts";
import { httpReceiver } from "../support/receivers.ts";
import { type Beside, startAll } from "./beside.ts";
import { runCommand } from "./commands.ts";
import { together, withAll } from "./everything.ts";
import { type Hooks, hooks } from "./hooks.ts";
import { type Kept, keep } from "./kept.ts";
import { ledger } from "./ledger.ts";
import { leftOver } from "./left-over.ts";
import { load } from "./load.ts";
import { checkArrivals, drained, noting, startRule } from "./notifications.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { type Book, senders } from "./points.ts";
import { type Random, random } from "./random.ts";
import { looking, type Play } from "./scenes.ts";
import { entryOf, type ServerProcess, serverProcess } from "./server-process.ts";
import { newTenant, type Tenant } from "./stage.ts";
import { traps } from "./traps.ts";
import { startUpdater } from "./updaters.ts";
import { nextSteps, nextVersion, ownVersion, type Version, versionBefore } from "./versions.ts";
import { startWatcher } from "./watchers.ts";
import { type Balanced, balanced, type Way } from "./ways.ts";

type Headers = Record<string, string>;

/** Every call is answered in this time: long, for a server that has just started on a busy machine is slow. */
const answerMs = 30_000;
/** How long a server that is told to stop is still there for those that have not heard of it yet, ms. */
const leaveMs = 500;
/** How long someone reads a table that a migration wants to change. */
const readMs = 1500;
/** This long at most a statement may wait for a migration, ms. */
const blockedMsMax = 10_000;
/** How long each client rests between two calls, ms. */
const restMs = 100;
/** How long clients call before anything is replaced, where it matters what they are notified without that, ms. */
const steadyMs = 10_000;
/** How long the client rests whose events are notified. */
const notifyRestMs = 20;
/** This many events may be refused before the client gives up. */
const againMax = 1000;
/** Entities that name a source. */
const existing = { filter: { field: "dimensions.source", operation: Operation.OP_EXISTS } };
const nextKind = "next.work";

const masterKeys = `faults:${Buffer.alloc(32, 7).toString("base64")}`;
const quiet = { info() {}, warn() {}, error: console.error };

/** Calls whose answers are all to be good ones. */
function strict(way: Way, headers: Headers) {
  const failures: string[] = [];
  let calls = 0;
  let slowestMs = 0;
  async function note<T>(name: string, call: () => Promise<T>): Promise<T | undefined> {
    const beganMs = performance.now();
    calls += 1;
    try {
      return await call();
    } catch (error) {
      const { message, cause } = error as Error;
      failures.push(`${name}: ${message} ${cause ?? ""}`);
      return undefined;
    } finally {
      slowestMs = Math.max(slowestMs, performance.now() - beganMs);
    }
  }
  return {
    failures,
    note,
    told: () => `${calls} calls, the slowest took ${Math.round(slowestMs)} ms`,
    json: (method: string, path: string, body?: object) =>
      note(`${method} ${path}`, async () => {
        const answer = await way.fetch(`/v1/${path}`, {
          method,
          headers: { ...headers, "content-type": "application/json" },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(answerMs),
        });
        const text = await answer.text();
        if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
        return JSON.parse(text);
      }),
  };
}
type Strict = ReturnType<typeof strict>;

/** Searches and reads, over connections of gRPC, Connect and /v1 that stay open. */
function reads(way: Way, headers: Headers, calls: Strict): Beside[] {
  const options = { timeoutMs: answerMs };
  const rpcs = (["grpc", "connect", "grpc-web"] as const).map((protocol): Beside => {
    const events = createClient(EventQueryService, way.transport(protocol, headers));
    const entities = createClient(EntityService, way.transport(protocol, headers));
    return {
      name: `reads over ${protocol}`,
      restMs,
      async turn(n) {
        if (n % 2 === 0) await calls.note(`${protocol} events`, () => events.searchEvents({ query: {} }, options));
        else
          await calls.note(`${protocol} entities`, () =>
            entities.searchEntities({ searchInput: { query: { clause: existing } } }, options),
          );
      },
    };
  });
  const json: Beside = {
    name: "reads over /v1",
    restMs,
    async turn(n) {
      if (n % 3 === 0) await calls.json("GET", "audit-log");
      else if (n % 3 === 1) await calls.json("POST", "events:count", { query: {}, fields: [{ field: "severity" }] });
      else await calls.json("GET", "notification/rules");
    },
  };
  return [...rpcs, json];
}

/** Changes of what is configured: triggers, rules, windows. One that is over when it comes is refused: a call may take some seconds. */
function changes(calls: Strict, { int }: Random): Beside[] {
  const clause = { contains: { field: "name", value: "never" } };
  return [
    {
      name: "changes",
      restMs,
      async turn(n) {
        const name = `change ${n}`;
        const type = { event: { query: { clause } } };
        const rule = { name, enabled: true, message: "x", triggerNames: [name], destinationNames: ["ops"] };
        const path = encodeURIComponent(name);
        // Where a server of an earlier version refuses one while it stops, the next ones have nothing to go on.
        const steps: [method: string, path: string, body?: object][] = [
          ["POST", "notification/triggers", { name, type }],
          ["POST", "notification/rules", rule],
          ["DELETE", `notification/rules/${path}`],
          ["DELETE", `notification/triggers/${path}`],
        ];
        for (const step of steps) if ((await calls.json(...step)) === undefined) return;
      },
    },
    {
      name: "windows",
      restMs: 500,
      async turn(n) {
        const clause = { filter: { field: "source", operation: "OP_EQUALS", value: `host ${int(0, 49)}` } };
        const schedule = { start: Date.now() + 2000, duration: 10_000 };
        const specification = { name: `window ${n}`, schedule, maintenanceState: 300, query: { clause } };
        await calls.json("POST", "modelcontext/maintwindows", { specification });
      },
    },
  ];
}

/** Events of which each is to arrive once. One that a server of an earlier version refuses while it stops is sent again. */
function notifying(calls: Strict): Beside & { readonly sent: number; readonly again: number } {
  let sent = 0;
  let again = 0;
  return {
    name: "notifications",
    restMs: notifyRestMs,
    get again() {
      return again;
    },
    get sent() {
      return sent;
    },
    async turn() {
      const dimensions = { source: `host ${sent % 50}` };
      const event = { name: `disk ${sent}`, timestamp: String(Date.now()), dimensions, severity: "SEVERITY_ERROR" };
      const body = { events: [{ ...event, status: "STATUS_OPEN" }] };
      for (;;) {
        const answer = await calls.json("POST", "data-receiver/events", body);
        if (answer?.succeeded === 1) break;
        if (answer !== undefined) throw new Error(`${event.name} was not stored: ${JSON.stringify(answer)}`);
        again += 1;
        if (again > againMax) throw new Error(`${again} events were refused`);
        await sleep(restMs);
      }
      sent += 1;
    },
  };
}

/** Someone reads what a migration changes, for longer than it waits. */
async function reading(url: string, tenantId: string): Promise<void> {
  const { sql, close } = connectOnce(url, "reader");
  await sql.begin(async (tx) => {
    await tx`select count(*) from entities where tenant_id = ${tenantId}`;
    await tx`select count(*) from rules where tenant_id = ${tenantId}`;
    await sleep(readMs);
  });
  await close();
}

/** Entities that models have made or changed, and whose updater has not run. */
async function unset(db: Sql, tenantId: string): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*)::int4 as count from entities
    where tenant_id = ${tenantId} and deleted_ms is null and metadata ? 'n' and not custom_properties ? 'updater'`;
  return row.count;
}

/** How long statements have waited for a migration, at most, as PostgreSQL says. */
function watchWaits(url: string) {
  const { sql, close } = connectOnce(url, "waits");
  let longestMs = 0;
  let going = true;
  const running = (async () => {
    for (; going; await sleep(50)) {
      const [row] = await sql<{ ms: number | null }[]>`
        select max(extract(epoch from clock_timestamp() - waitstart) * 1000)::float8 as ms from pg_locks
        where not granted and pg_blocking_pids(pid) && array(
          select pid from pg_stat_activity where application_name like 'belfry%migrate')`;
      longestMs = Math.max(longestMs, row?.ms ?? 0);
    }
    await close();
  })();
  running.catch(() => undefined);
  return {
    longestMs: () => Math.round(longestMs),
    async stop() {
      going = false;
      await running;
    },
  };
}

const stopsAbruptly = /the server is stopping|REFUSED_STREAM|ECONNRESET|other side closed/;

/** The etag of a destination did not count its secrets in 0.2.0, so it is another one since. */
const withoutSecrets = /destinations.*\.etag was /;

/** Settings of a version, in its own names: those of 0.1.0 had no units. */
function settingsOf({ knows }: Version, defaults = false): Record<string, string> {
  const [drainMs, waitMs] = [defaults ? 10_000 : answerMs, defaults ? 1000 : answerMs / 2];
  if (!knows("BELFRY_SHUTDOWN_DELAY"))
    return {
      BELFRY_DRAIN_MS: `${drainMs}`,
      BELFRY_INGEST_WAIT_MS_MAX: `${waitMs}`,
      ...(knows("BELFRY_LEAVE_MS") && { BELFRY_LEAVE_MS: `${leaveMs}` }),
    };
  return {
    BELFRY_SHUTDOWN_DELAY: `${leaveMs}ms`,
    BELFRY_SHUTDOWN_TIMEOUT: `${drainMs}ms`,
    BELFRY_INGEST_WAIT: `${waitMs}ms`,
  };
}

async function applied(db: Sql): Promise<{ count: number; next: number }> {
  const [row] = await db<{ count: number; next: number }[]>`
    select count(*)::int4 as count, (count(*) filter (where name like '9___\\_next\\_%'))::int4 as next from migrations`;
  return row ?? { count: 0, next: 0 };
}

/** @throws when a server of a version has started, or says anything else than that the schema is beyond it */
async function refusesToStart(server: ServerProcess, version: Version, needs: string): Promise<void> {
  await server.stop();
  const how = { tree: version.tree, env: settingsOf(version) };
  const refused = await server.start({}, how).catch((error: Error) => error.message);
  if (!refused?.includes(needs))
    throw new Error(`a server beyond the reach of the schema has started, or said: ${refused}`);
}

/** A migration names an oldest server that is newer: a server that runs goes on, and does not start again. */
async function beyondReach(db: Sql, [one, two]: Servers, old: Version): Promise<void> {
  await db`insert into migrations (name, digest, oldest_server) values ('9999_beyond', '', '99.0.0')`;
  await refusesToStart(two, old, "its migration 9999_beyond needs Belfry 99.0.0 or a newer one");
  const answer = await fetch(`${one.url}/readyz`);
  if (answer.status !== 200) throw new Error("a server that ran has stopped serving");
  await db`delete from migrations where name = '9999_beyond'`;
}

type Servers = readonly [ServerProcess, ServerProcess];

/** Tells whether the database is new to versions that keep the addresses of webhooks secret: one before may use it. */
async function isOfBefore(db: Sql): Promise<boolean> {
  return (await db`select from migrations where name = '0026_closed-by'`).length === 0;
}

/** What webhooks whose addresses are secrets get while versions take turns. */
function hookStages(made: Hooks, [one, two]: Servers, mayHide: boolean) {
  const both = [one.url, two.url];
  return {
    before: async (round: number) => {
      if (round === 1) await made.make(one.url, "before");
      await made.send(both, "before the upgrade");
    },
    /** One server was replaced. `isFirst`: the first of all. */
    beside: async (isNext: boolean, isFirst: boolean) => {
      if (isFirst) {
        await made.make(one.url, "beside");
        for (const name of made.names()) {
          await made.keep(one.url, name, true);
          await made.keep(two.url, name, mayHide);
        }
      }
      await made.send(both, isNext ? "upgraded in part" : "taken back in part");
    },
    /** Both were. */
    done: (isNext: boolean) => made.send(both, isNext ? "upgraded" : "taken back"),
    /** No server of before will come any more. */
    after: async () => {
      await made.send(both, "upgraded for good");
      await made.begin();
      await made.make(one.url, "after");
      for (const name of made.names()) await made.keep(two.url, name, true);
      await made.send(both, "sealed");
    },
  };
}

/** A client that goes on with what it has of an earlier version, and that version's export, which this checkout imports. */
async function carriedOver(
  stack: AsyncDisposableStack,
  postgres: { url: string; adminUrl: string; dataDir: string },
  old: Version,
  { url, tenant, env }: { url: string; tenant: Tenant; env: Record<string, string> },
): Promise<Kept & { compareImport(): Promise<string[]> }> {
  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  const kept = await keep(url, tenant.manager, receiver.url);
  const file = join(postgres.dataDir, "export");
  await runCommand(entryOf(old.tree) as string, postgres.url, ["export", file], { env });
  return {
    ...kept,
    async compareImport() {
      const admin = connectOnce(postgres.adminUrl, "faults");
      await admin.sql.unsafe("create database imported owner belfry");
      await admin.close();
      const imported = postgres.url.replace(/\/belfry$/, "/imported");
      await runCommand(await program(), imported, ["import", file], { env });
      const ownDir = await place();
      const server = await serverProcess({ ...env, BELFRY_DATA_DIR: ownDir, DATABASE_URL: imported });
      try {
        await server.start();
        return (await kept.compare(server.url)).map((line) => `imported: ${line}`);
      } finally {
        await server.stop();
        await clear(ownDir);
      }
    },
  };
}

/**
 * Two servers of a version under load are replaced by the next one, one after the other, and then by the version before
 * again; clients have the addresses of both. No call may fail. The version before is this checkout, and the next one a copy of it
 * with migrations; or it is the one of `before`, and the next one is such a copy, too; then a client keeps ids, cursors and the place of its watch through all of
 * it, and an export of the first version is imported by this checkout. `defaults`: servers have no other settings
 * than how long it serves on after a stop signal. @throws what is not as it must be
 */
export async function playUpgrade({ seed, until, say, before, defaults }: Play): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const old = before === undefined ? ownVersion() : versionBefore(before);
  stack.defer(() => old.remove());
  const next = await nextVersion("9.0.0", old.version);
  stack.defer(() => next.remove());
  const dataDir = await (before === undefined ? clusterPlace() : place());
  stack.defer(() => clear(dataDir));
  const postgres = await startEmbedded({ dataDir, log: quiet, durable: false });
  stack.defer(() => postgres.stop("immediate"));
  const db = looking(postgres.url);

  const waits = watchWaits(postgres.url);
  stack.defer(() => waits.stop());
  const servers: ServerProcess[] = [];
  const common = { BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8", BELFRY_MASTER_KEYS: masterKeys };
  for (let i = 0; i < 2; i++) {
    const ownDir = await place();
    stack.defer(() => clear(ownDir));
    const env = { ...common, BELFRY_DATA_DIR: ownDir, DATABASE_URL: postgres.url };
    // What a busy machine cannot store in time is no matter of an upgrade, as long as it is answered within `answerMs`.
    const server = await serverProcess(env);
    stack.defer(() => server.stop());
    await server.start({}, { tree: old.tree, env: settingsOf(old, defaults) });
    servers.push(server);
  }
  const { sql, close } = connectOnce(postgres.url, "faults");
  const [one, two, three] = [await newTenant(sql, "one"), await newTenant(sql, "two"), await newTenant(sql, "three")];
  const hooked = await newTenant(sql, "hooks");
  // Work that only some later version knows.
  await sql.begin((tx) => enqueue(tx, { tenantId: one.id, kind: nextKind }, [{ payload: "x" }], Date.now()));
  const trappedTenant = await newTenant(sql, "traps");
  await close();

  const urls = servers.map(({ url }) => url);
  const carried =
    before === undefined
      ? undefined
      : await carriedOver(stack, { ...postgres, dataDir }, old, {
          url: urls[0] as string,
          tenant: three,
          env: common,
        });
  const way: Balanced = balanced(urls);
  stack.defer(() => way.stop());
  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  const arrived = noting(receiver);
  await startRule(urls, two.manager, receiver.url);
  await startUpdater(urls[0] as string, one.manager, "updater");
  const mayHide = !(await isOfBefore(db));
  const hidden = await hooks(stack, { db, tenantId: hooked.id, headers: hooked.manager, mayHide });
  const trapped = mayHide ? undefined : await traps(urls[0] as string, trappedTenant.manager);
  const stages = hookStages(hidden, servers as [ServerProcess, ServerProcess], mayHide);
  const watchers = [await startWatcher({ name: "watcher", seed, urls, headers: one.manager, severities: [] })];
  stack.defer(() => watchers.forEach((watcher) => void watcher.stop()));

  const [asked, changed, sent] = [strict(way, one.manager), strict(way, two.manager), strict(way, two.agent)];
  const notifications = notifying(sent);
  const beside = startAll([...reads(way, one.manager, asked), ...changes(changed, random(seed, 71)), notifications]);
  stack.defer(() => beside.stop());
  const points: Book = new Map();
  const entries = ledger();
  const { compareAll } = withAll(entries, points, watchers, beside.failed, say);
  const clients = load({
    seed,
    clients: 5,
    urls: [way],
    headers: one.agent,
    ledger: entries,
    restMs,
    asFirstRelease: true,
    attemptMs: answerMs,
  });
  const pointClients = senders(seed, [way], one.agent, points, {
    timesAgain: false,
    asFirstRelease: true,
    restMs,
    attemptMs: answerMs,
  });
  const all = together(clients, pointClients);

  function failed(): string[] {
    const refusals = [...clients.refusals].map(([what, count]) => `${count} × ${what}`);
    return [
      ...refusals,
      ...pointClients.refusals.map((what) => `points: ${what}`),
      ...[asked, changed, sent].flatMap(({ failures }) => failures),
      ...servers.flatMap(({ complaints }) => complaints),
    ];
  }

  async function replace(server: ServerProcess, version: Version, more: Record<string, string> = {}) {
    const beganMs = performance.now();
    await server.stop();
    const stoppedMs = performance.now();
    const reader = version === next ? reading(postgres.url, one.id) : undefined;
    await server.start({}, { tree: version.tree, env: { ...settingsOf(version, defaults), ...more } });
    await reader;
    const ms = [stoppedMs - beganMs, performance.now() - stoppedMs].map(Math.round);
    say(
      `version ${version.version}: stopped after ${ms[0]} ms, started after ${ms[1]} ms; ${failed().length} failures, ${way.exhausted} times 429`,
    );
    // Both versions side by side, or one alone; clients that were refused a connection come back meanwhile.
    await sleep(1000);
  }

  /** Both servers are the next version for good: it stores what the version before cannot read, which refuses to start. */
  async function upgradeForGood(): Promise<void> {
    for (const { complaints } of servers) complaints.length = 0;
    for (const server of servers) await replace(server, next, { TEST_LIMITS: '{"housekeepingMs":1000}' });
    await stages.after();
    const complaints = servers.flatMap((server) => server.complaints);
    const lost = await compareKept(servers[1] as ServerProcess, next);
    const wrong = [...complaints, ...lost];
    if (wrong.length > 0) throw new Error(`SEED=${seed}, upgraded for good:\n${wrong.slice(0, 20).join("\n")}`);
    if (!mayHide) await refusesToStart(servers[0] as ServerProcess, old, "its migration 0026_closed-by needs Belfry");
    say(`${hidden.told()}, from the first version to the last`);
  }

  const counts = (line: string) => old.version !== "0.2.0" || !withoutSecrets.test(line);
  async function compareKept(server: ServerProcess, version: Version): Promise<string[]> {
    const kept = ((await carried?.compare(server.url)) ?? []).filter(counts);
    const found = [...kept, ...(version === next ? ((await trapped?.(server.url)) ?? []) : [])];
    return found.map((line) => `version ${version.version}: ${line}`);
  }

  for (let round = 1; ; round++) {
    // One round at least: without it there is nothing that an older server could not read.
    if (round > until.rounds || (round > 1 && performance.now() > (until.endMs ?? Infinity))) {
      await beside.stop();
      // Both servers are the older one, which may read no feed: what the next one has left waits for one that does.
      await replace(servers[0] as ServerProcess, next);
      await drained(db);
      await replace(servers[0] as ServerProcess, old);
      await db`delete from jobs where tenant_id = ${one.id} and kind = ${nextKind} and fence = 0`;
      await db`delete from due_work where tenant_id = ${one.id} and kind = ${nextKind}`;
      const left = [...(await leftOver(db, 30_000)), ...(await checkArrivals(db, arrived, notifications.sent, []))];
      if (left.length > 0) throw new Error(`SEED=${seed}, in the end:\n${left.slice(0, 20).join("\n")}`);
      const late = performance.now() + 30_000;
      let without = await unset(db, one.id);
      for (; without > 0 && performance.now() < late; await sleep(200)) without = await unset(db, one.id);
      if (without > 0) throw new Error(`SEED=${seed}: ${without} entities lack what the updater sets`);
      const differing = ((await carried?.compareImport()) ?? []).filter(counts);
      if (differing.length > 0) throw new Error(`SEED=${seed}, in the end:\n${differing.slice(0, 20).join("\n")}`);
      if (carried) say("ids, cursors and watches went on from version to version; the export was imported whole");
      await beyondReach(db, servers as [ServerProcess, ServerProcess], old);
      await upgradeForGood();
      say(
        `${[asked, changed, sent].map(({ told }) => told()).join("; ")}; ${notifications.sent} notifications, ${notifications.again} times sent again; ${way.refused} connections refused; a statement waited at most ${waits.longestMs()} ms for a migration`,
      );
      return round - 1;
    }
    all.go();
    await sleep(defaults ? steadyMs : 500);
    if (defaults) say(`before the upgrade clients were told ${way.exhausted} times 429 in ${steadyMs} ms`);
    const lost: string[] = [];
    await stages.before(round);
    for (const version of [next, old]) {
      for (const server of servers) {
        await replace(server, version);
        if (server === servers[0]) await stages.beside(version === next, round === 1 && version === next);
        lost.push(...(await compareKept(server, version)));
      }
      await stages.done(version === next);
      const { next: count } = await applied(db);
      if (count !== nextSteps) throw new Error(`${count} of ${nextSteps} migrations were applied`);
    }
    await all.stop();
    say(`clients were told ${[...way.told].map(([what, count]) => `${count} × ${what}`).join(", ")}`);
    const failures = failed();
    // A version that stops serving at once refuses some calls while it stops: no newer one can mend that.
    const excused =
      old.knows("BELFRY_LEAVE_MS") || old.knows("BELFRY_SHUTDOWN_DELAY")
        ? []
        : failures.filter((line) => stopsAbruptly.test(line));
    if (excused.length > 0) say(`version ${old.version} failed while it stopped:\n${excused.join("\n")}`);
    const unexcused = failures.filter((line) => !excused.includes(line));
    const wrong = [...unexcused, ...lost, ...(await compareAll(db, one.id))];
    if (waits.longestMs() > blockedMsMax) wrong.push(`a statement waited ${waits.longestMs()} ms for a migration`);
    if (wrong.length > 0) {
      const told = wrong.slice(0, 30).join("\n");
      throw new Error(`SEED=${seed}, round ${round}: ${wrong.length} failures\n${told}`);
    }
    say(`round ${round}: ${entries.counts.acknowledged} items acknowledged`);
  }
}
