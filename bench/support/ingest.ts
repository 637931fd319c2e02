import type { Load, LoadRequest, Outcome } from "../load/load.ts";
import type { PlainLoad } from "../load/plain.ts";
import type { Calls } from "./calls.ts";
import { startChild } from "./child.ts";
import { type Database, startDatabase } from "./database.ts";
import { startGenerator } from "./generator.ts";
import { machineFacts } from "./machine.ts";
import type { Measured } from "./race.ts";
import { commandOf, type Settings, settingsOf } from "./settings.ts";

/** A server, a generator and a plain client of PostgreSQL, which share all processors with the database. */
export interface Ingest extends AsyncDisposable {
  settings: Settings;
  database: Database;
  port: number;
  /** Answers so far, and how many of them were not good. */
  answered: Map<string, number>;
  /** Puts a request on the server again and again, over this many connections; `count` items each, counted under `as`. */
  put(request: LoadRequest, connections: number, of: { as: string; count: number }): Promise<Measured>;
  /** Sends that many requests one after the other and does not count them. */
  prepare(calls: Calls, requests: number, of: { as: string; count: number }): Promise<void>;
  /** The same with rows, in the schema `plain`. */
  plain(what: PlainLoad["what"], connections: number, count: number): Promise<Measured>;
  /** The processor's time and memory of the server. */
  usage(): Promise<{ cpuUs: number; rssBytes: number }>;
}

/** Starts all of it, and prints what a reader must know. */
export async function startIngest(
  name: string,
  notes: readonly string[],
  defaults: { rounds: number; seconds: number },
): Promise<Ingest> {
  const args = process.argv.slice(2);
  const settings = settingsOf(args, { rounds: defaults.rounds, countMs: defaults.seconds * 1000 });
  await using starting = new AsyncDisposableStack();
  const database = starting.use(await startDatabase("shared"));
  const { sql, env } = database;
  const profile =
    settings.profile === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${settings.profile}`, "--cpu-prof-interval=500"];
  const server = starting.use(startChild("shared", "servers/belfry.ts", env, [...profile, ...settings.node]));
  const { port } = await server.ask<{ port: number }>();
  const generator = starting.use(startGenerator("node", true, "shared"));
  const rows = starting.use(startChild("shared", "load/plain.ts", {}));
  await sql`create schema plain`;
  for (const each of ["events", "occurrences", "instances"]) {
    await sql.unsafe(`create table plain.${each} (like public.${each} including indexes including generated)`);
  }
  await sql`alter table plain.occurrences set (fillfactor = 60)`;
  console.log(`${commandOf(name, args)}\n`);
  const how = `medians of ${settings.rounds} round${settings.rounds > 1 ? "s" : ""} of ${settings.countMs / 1000} s; no TLS; one request in work on each connection`;
  for (const line of [...notes, ...machineFacts(database.version, true), how]) console.log(line);

  const answered = new Map<string, number>();
  const usage = () => server.ask<{ cpuUs: number; rssBytes: number }>("cpu");
  const note = (as: string, items: number) => answered.set(as, (answered.get(as) ?? 0) + items);
  async function load(given: Load, { as, count }: { as: string; count: number }): Promise<Measured> {
    const before = await usage();
    const outcome = await generator.run(given);
    const after = await usage();
    note(as, (outcome.answered - outcome.bad) * count);
    const cpuUs = (after.cpuUs - before.cpuUs) / ((outcome.answered - outcome.bad) * count);
    return measured(outcome, count, cpuUs);
  }
  const running = starting.move();
  return {
    settings,
    database,
    port,
    answered,
    usage,
    put: (request, connections, of) =>
      load({ port, request, connections, streams: 1, leadInMs: 300, countMs: settings.countMs }, of),
    async prepare({ rest }, requests, { as, count }) {
      for (let sent = 0; sent < requests; ) {
        const before = answered.get(as) ?? 0;
        await load({ port, request: rest, connections: 1, streams: 1, leadInMs: 0, countMs: 500 }, { as, count });
        sent += ((answered.get(as) ?? 0) - before) / count;
      }
    },
    async plain(what, connections, count) {
      const given: PlainLoad = {
        url: env.DATABASE_URL ?? "",
        what,
        connections,
        leadInMs: 300,
        countMs: settings.countMs,
      };
      const answer = await rows.ask<{ outcome: Outcome } | { error: string }>(given as never);
      if ("error" in answer) throw new Error(answer.error);
      note("plain", answer.outcome.answered * count);
      return measured(answer.outcome, count, undefined);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function measured({ perSec, p50Ms, p99Ms, bad }: Outcome, count: number, cpuUs: number | undefined): Measured {
  return { itemsPerSec: perSec * count, p50Ms, p99Ms, refused: bad, cpuUs };
}

/** What the database holds at the end beside what was acknowledged. @throws when they are not the same. */
export async function counted({ database: { sql }, answered }: Ingest, entities: number): Promise<string> {
  const [row] = await sql<[{ events: number; plain: number; entities: number }]>`
    select (select count(*) from instances)::float8 as events, (select count(*) from plain.instances)::float8 as plain,
      (select count(*) from entities)::float8 as entities`;
  const expected = { events: answered.get("events") ?? 0, plain: answered.get("plain") ?? 0, entities };
  if (JSON.stringify({ ...row }) !== JSON.stringify(expected)) {
    throw new Error(`${JSON.stringify(row)} are stored, acknowledged were ${JSON.stringify(expected)}`);
  }
  return `All ${row.events} acknowledged events and ${row.plain} plain rows are stored, of ${entities} entities.`;
}
