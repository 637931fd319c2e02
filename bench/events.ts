// Questions about 5 million instances in 500,000 occurrences beside the same put directly in SQL, in one process and over
// one pool; then selective ones in an estate and in one of ten times its size, and how soon watchers are notified of a change.
import { parseArgs } from "node:util";
import { createTenant } from "../src/auth/create-tenant.ts";
import { readConfig } from "../src/config/settings.ts";
import { connect, connectOnce } from "../src/db/connect.ts";
import { discardPlans } from "../src/db/plans.ts";
import { fillEstate } from "../test/support/event-estate.ts";
import { startChild } from "./support/child.ts";
import { startDatabase } from "./support/database.ts";
import { fillEvents } from "./support/estate-history.ts";
import { type EventQuestion, eventQuestions } from "./support/event-questions.ts";
import { machineFacts, move, postgresCpuMs } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import { selectiveQuestions } from "./support/selective-questions.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";
import { watchLatency } from "./support/watch-latency.ts";

const args = process.argv.slice(2);
const { values } = parseArgs({
  args,
  options: {
    size: { type: "string", default: "500000" },
    days: { type: "string", default: "7" },
    rounds: { type: "string", default: "40" },
    seconds: { type: "string", default: "20" },
    only: { type: "string", default: "" },
    hosts: { type: "string", default: "4000" },
  },
});
const size = Number(values.size);
const days = Number(values.days);
const rounds = Number(values.rounds);
const warmUps = 5;

await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase());
console.log(`${commandOf("events", args)}\n`);
for (const line of machineFacts(database.version)) console.log(line);
const url = database.env.DATABASE_URL ?? "";
const config = readConfig(database.env);

const at = (times: readonly number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;

/** How long each run took, and the processor time of PostgreSQL and this process for all of them, ms. */
interface Times {
  ms: number[];
  cpuMs: number;
}

const nothing = (): Times => ({ ms: [], cpuMs: 0 });

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + postgresCpuMs(database.pid);
}

async function time(times: Times, work: () => Promise<unknown>): Promise<void> {
  const beginCpuMs = cpuMs();
  const beginMs = performance.now();
  await work();
  times.ms.push(performance.now() - beginMs);
  times.cpuMs += cpuMs() - beginCpuMs;
}

async function askAll(): Promise<void> {
  const pool = connect(url, config);
  stack.defer(() => pool.close());
  const sent: { text: string; parameters: unknown[] }[] = [];
  // A copy: the driver writes over the parameters as it sends them.
  const debug = (_: number, text: string, parameters: unknown[]) =>
    // What the pool sends of its own is none of the statements asked about.
    text === discardPlans ? 0 : sent.push({ text, parameters: [...parameters] });
  const telling = connect(url, { ...config, debug });
  stack.defer(() => telling.close());
  // Filling takes longer than a statement may, and need not be on disk at once.
  const unlimited = connectOnce(url, "bench");
  stack.defer(() => unlimited.close());
  await unlimited.sql`set synchronous_commit = off`;
  const [tenant] = await pool.sql<{ id: string }[]>`select id from tenants`;
  const tenantId = tenant?.id ?? "";
  const beginMs = performance.now();
  progress("fills the tables");
  const { occurrences, instances, endMs } = await fillEvents(unlimited.sql, tenantId, size, days);
  await unlimited.sql`checkpoint`.catch(() => undefined);
  console.log(
    `${instances} instances in ${occurrences} occurrences of ${days} days, filled in ${((performance.now() - beginMs) / 1000).toFixed(0)} s\n`,
  );

  async function indexesOf(question: EventQuestion): Promise<string> {
    sent.length = 0;
    await question.service(telling.sql, BigInt(endMs));
    const found = new Set<string>();
    for (const { text, parameters } of [...sent]) {
      for (const row of await pool.sql.unsafe(`explain ${text}`, parameters as never[])) {
        const line = String(row["QUERY PLAN"]);
        const name = /(?:Index (?:Only )?Scan(?: Backward)? using|Bitmap Index Scan on) (\w+)/.exec(line)?.[1];
        if (name !== undefined) found.add(name);
        const whole = /Seq Scan on (occurrences|instances|events)/.exec(line)?.[1];
        if (whole !== undefined) found.add(`ALL OF ${whole}`);
      }
    }
    return [...found].join(" ");
  }

  async function measure(question: EventQuestion): Promise<string[]> {
    progress(question.name);
    let [service, direct] = [nothing(), nothing()];
    let results = 0;
    for (let i = -warmUps; i < rounds; i++) {
      if (i === 0) [service, direct] = [nothing(), nothing()];
      // Ends differ, so that no answer is one that was just given.
      const end = BigInt(endMs - Math.abs(i) * 7_000);
      const ask = async () => {
        results = await question.service(pool.sql, end);
      };
      const both = [() => time(service, ask), () => time(direct, () => question.direct(pool.sql, end))];
      for (const one of i % 2 === 0 ? both : both.reverse()) await one();
    }
    const apart = at(service.ms, 0.5) - at(direct.ms, 0.5);
    const cpu = [service, direct].map((times) => times.cpuMs / rounds);
    const figures = [at(service.ms, 0.5), at(service.ms, 0.99), question.aimMs, at(direct.ms, 0.5), apart, ...cpu];
    return [question.name, String(results), ...figures.map((ms) => ms.toFixed(1)), await indexesOf(question)];
  }

  const rows: string[][] = [];
  for (const question of eventQuestions(tenantId)) {
    if (question.name.includes(values.only)) rows.push(await measure(question));
  }
  const head = [
    "question",
    "results",
    "p50 ms",
    "p99 ms",
    "aim ms",
    "direct p50",
    "more than direct",
    "CPU ms",
    "direct",
    "indexes",
  ];
  if (rows.length > 0) console.log(table(head, rows));
}

/** The same questions with the same answers where there is ten times as much: open events, and five closed occurrences for each. */
async function askSelective(): Promise<void> {
  const pool = connect(url, config);
  stack.defer(() => pool.close());
  const unlimited = connectOnce(url, "bench");
  stack.defer(() => unlimited.close());
  const sizes = [Number(values.hosts), 10 * Number(values.hosts)];
  const tenants: string[] = [];
  for (const hosts of sizes) {
    progress(`fills an estate of ${hosts} open events`);
    const { id } = await createTenant(pool.sql, `estate of ${hosts}`);
    await fillEstate(unlimited.sql, id, { hosts, closed: 5 * hosts });
    tenants.push(id);
  }
  await unlimited.sql.unsafe("vacuum analyze entities, events, occurrences");
  const rows: string[][] = [];
  for (const { name, ask } of selectiveQuestions) {
    progress(name);
    const times = tenants.map(nothing);
    const results = tenants.map(() => 0);
    for (let i = -warmUps; i < rounds; i++) {
      if (i === 0) for (const each of times) Object.assign(each, nothing());
      for (const [at, tenantId] of tenants.entries()) {
        const again = async () => {
          results[at] = await ask(pool.sql, tenantId);
        };
        await time(times[at] as Times, again);
      }
    }
    const [small, large] = times.map(({ ms }) => at(ms, 0.5)) as [number, number];
    const cpu = times.map(({ cpuMs }) => (cpuMs / rounds).toFixed(1));
    rows.push([name, results.join("; "), small.toFixed(1), large.toFixed(1), (large / small).toFixed(2), ...cpu]);
  }
  console.log(`\nselective questions; aim: 1.5 times as long at most where there is ten times as much\n`);
  const head = [
    "question",
    "results",
    ...sizes.map((size) => `${size} p50 ms`),
    "ratio",
    ...sizes.map((size) => `${size} CPU ms`),
  ];
  console.log(table(head, rows));
}

async function watchAll(): Promise<void> {
  const server = stack.use(startChild("server", "servers/belfry.ts", database.env));
  const { port } = await server.ask<{ port: number }>();
  const rows: string[][] = [];
  for (const [watchers, changesPerSec] of [
    [4, 500],
    [20, 100],
    [200, 10],
  ] as const) {
    progress(`${watchers} watchers`);
    const forMs = Number(values.seconds) * 1000;
    const told = await watchLatency(`http://127.0.0.1:${port}`, database.key, { watchers, changesPerSec, forMs });
    const { messagesPerSec, fromAnswerMs, fromRequestMs } = told;
    const figures = [at(fromAnswerMs, 0.5), at(fromAnswerMs, 0.99), at(fromRequestMs, 0.5), at(fromRequestMs, 0.99)];
    rows.push([`${watchers}`, `${changesPerSec}`, messagesPerSec.toFixed(0), ...figures.map((ms) => ms.toFixed(1))]);
  }
  console.log("\nwatchers told of a change; aims: p50 20 ms, p99 250 ms from the commit at 2,000 messages/s\n");
  const head = ["watchers", "changes/s", "messages/s", "from answer p50", "p99", "from request p50", "p99"];
  console.log(table(head, rows));
}

if (values.only === "selective" || values.only === "") await askSelective();
if (values.only !== "watch" && values.only !== "selective") await askAll();
move(process.pid, "generator");
if ("watch".includes(values.only) || values.only === "") await watchAll();
