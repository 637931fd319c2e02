// Reads of single things and of lists, beside their statements: same process, same pool, same rows, no network but the
// one to PostgreSQL.
import { create } from "@bufbuild/protobuf";
import { routes } from "#gen/routes.ts";
import { keyVerifier } from "../src/auth/key-verifier.ts";
import { readConfig } from "../src/config/settings.ts";
import { connect } from "../src/db/connect.ts";
import { openLog } from "../src/rpc/log.ts";
import { pipeline } from "../src/rpc/pipeline.ts";
import { planner } from "../src/transcoding/plan.ts";
import { callStarter, untilAborted } from "../src/wire/call.ts";
import { accountReads } from "./support/account-reads.ts";
import { credentialReads } from "./support/credential-reads.ts";
import { startDatabase } from "./support/database.ts";
import { dictionaryReads } from "./support/dictionary-reads.ts";
import { machineFacts, move } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import type { ReadCase, Reads } from "./support/reads.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const parts: readonly Reads[] = [accountReads, credentialReads, dictionaryReads];
const inWork = [1, 16];

const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 15, countMs: 200 });
await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase());
move(process.pid, "server");
const config = readConfig(database.env);
const pool = connect(config.databaseUrl ?? "", config);
stack.defer(() => pool.close());
const [tenant] = await pool.sql<{ id: string }[]>`select id from tenants`;
const made = await Promise.all(parts.map((part) => part(pool.sql, tenant?.id ?? "")));
const cases = made.flatMap((part) => part.cases).filter(({ name }) => name.includes(settings.only ?? ""));

const { admit, implement } = pipeline({ verify: keyVerifier(pool).verify, gate: pool.gate, log: openLog("silent") });
const services = made
  .flatMap((part) => part.services)
  .map(({ service, implementation }) => ({ service, implementation: implement(service, implementation) }));
const { planOf } = planner({
  services,
  limitsOf: () => ({ itemsMax: Number.POSITIVE_INFINITY, memoryBytesMax: Number.POSITIVE_INFINITY }),
});
const startCall = callStarter(config.deadlineMsMax, undefined);
const header = new Headers(database.key);

/** What /v1 does between the request's parts and the answer's text: key, permission, rules, handler, JSON. */
function serviceOf({ method, request }: ReadCase): () => Promise<string> {
  const route = routes.find((each) => each.method === method);
  if (route === undefined) throw new Error(`${method.name} has no route`);
  const plan = planOf(route);
  return async () => {
    const values = await admit(method, header);
    const call = startCall({
      method,
      protocol: "http",
      httpMethod: "GET",
      url: "",
      header,
      values,
      timeoutMs: undefined,
      bounded: true,
    });
    const answer = await untilAborted(plan.handler(create(method.input, request), call), call);
    call.finish();
    return plan.write(plan.answerOf(answer as never));
  };
}

/** Microseconds that one of them takes, with this many in work at once. */
async function timeUs(work: () => PromiseLike<unknown>, atOnce: number, forMs: number): Promise<number> {
  const startMs = performance.now();
  let done = 0;
  async function run() {
    while (performance.now() - startMs < forMs) {
      await work();
      done += 1;
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run));
  return ((performance.now() - startMs) * 1000) / done;
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function compare(each: ReadCase, atOnce: number): Promise<string[]> {
  const service = serviceOf(each);
  const read = (await each.statement()).length;
  if (read !== each.rows) throw new Error(`${each.name}: the statement reads ${read} rows`);
  for (const work of [service, each.statement]) await timeUs(work, atOnce, settings.warmUpMs / 4);
  const rounds: { statement: number; service: number }[] = [];
  for (let i = 0; i < settings.rounds; i++) {
    const serviceFirst = i % 2 === 0 ? await timeUs(service, atOnce, settings.countMs) : undefined;
    const statement = await timeUs(each.statement, atOnce, settings.countMs);
    rounds.push({ statement, service: serviceFirst ?? (await timeUs(service, atOnce, settings.countMs)) });
  }
  const ratios = rounds.map((round) => round.service / round.statement);
  return [
    each.name,
    String(atOnce),
    median(rounds.map((round) => round.statement)).toFixed(0),
    median(rounds.map((round) => round.service)).toFixed(0),
    median(ratios).toFixed(2),
    `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`,
  ];
}

console.log(`${commandOf("reads", args)}\n`);
for (const line of machineFacts(database.version)) console.log(line);
console.log(`Medians of ${settings.rounds} rounds of ${settings.countMs} ms, in turns; ratio: service by statement.\n`);
const rows: string[][] = [];
for (const each of cases) {
  progress(each.name);
  for (const atOnce of inWork) rows.push(await compare(each, atOnce));
}
console.log(table(["", "in work", "statement µs", "service µs", "ratio", "least–most"], rows));
