// Searches for entities beside their own statements: same process, same pool, same rows.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type SearchEntitiesRequest, SearchEntitiesRequestSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { PageInputSchema } from "#gen/belfry/paging/v1/paging_pb.ts";
import { readConfig } from "../src/config/settings.ts";
import { connect, connectOnce } from "../src/db/connect.ts";
import { discardPlans } from "../src/db/plans.ts";
import { searchEntities } from "../src/entities/search.ts";
import { startDatabase } from "./support/database.ts";
import { type Question, questions } from "./support/entity-questions.ts";
import { bytesAnEntity, fillEntities } from "./support/entity-table.ts";
import { machineFacts, move } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

/** One statement as it was sent. */
interface Sent {
  text: string;
  parameters: unknown[];
}

const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 3, countMs: 1 });
const sizes = settings.size === undefined ? [20_000, 200_000] : [settings.size];
const pageThousand = 1000;

await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase());
move(process.pid, "server");
let sent: Sent[] | undefined;
// A copy: the driver writes over the parameters as it sends them.
const tell = (_: number, text: string, parameters: unknown[]) =>
  // What the pool sends of its own is none of the statements asked about.
  text === discardPlans ? 0 : sent?.push({ text, parameters: [...parameters] });
const url = database.env.DATABASE_URL ?? "";
const config = readConfig(database.env);
const pool = connect(url, config);
stack.defer(() => pool.close());
const { sql } = pool;
// One that tells its statements makes an error for each piece of them, so it is not the one that is measured.
const telling = connect(url, { ...config, debug: tell });
stack.defer(() => telling.close());
// Indexes take longer to make than a statement may.
const unlimited = connectOnce(url, "bench");
stack.defer(() => unlimited.close());
const [tenant] = await sql<{ id: string; name: string }[]>`select id, name from tenants`;
if (tenant === undefined) throw new Error("there is no tenant");
const owner = tenant;
const never = new AbortController().signal;
const ask = (request: SearchEntitiesRequest, on = sql) => searchEntities(on, owner, request, never);
const decoded = (bytes: Uint8Array) => fromBinary(SearchEntitiesRequestSchema, bytes);

console.log(`${commandOf("entities", args)}\n`);
for (const line of machineFacts(database.version)) console.log(line);

async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/** The statements of a request: those that were sent together run together again. */
async function recorded(bytes: Uint8Array): Promise<Sent[]> {
  sent = [];
  await ask(decoded(bytes), telling.sql);
  const all = sent;
  sent = undefined;
  return all;
}

async function replay(statements: readonly Sent[], together: boolean): Promise<void> {
  const run = ({ text, parameters }: Sent) => sql.unsafe(text, parameters as never[], { prepare: true });
  if (together) await Promise.all(statements.map(run));
  else for (const statement of statements) await run(statement);
}

async function indexesOf(statements: readonly Sent[]): Promise<string> {
  const names = new Set<string>();
  for (const { text, parameters } of statements) {
    const plan = await sql.unsafe(`explain ${text}`, parameters as never[]);
    for (const row of plan) {
      const line = String(row["QUERY PLAN"]);
      const found = /(?:Index (?:Only )?Scan(?: Backward)? using|Bitmap Index Scan on) (\w+)/.exec(line)?.[1];
      if (found !== undefined) names.add(found);
      if (/Seq Scan on entities/.test(line)) names.add("ALL ROWS");
    }
  }
  return [...names].join(" ");
}

const at = (values: readonly number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;

/** The question's page 1,000, from the place where page 999 ends. */
async function thousandth({ name, requests }: Question): Promise<Question> {
  const request = decoded(requests[0] as Uint8Array);
  const search = request.searchInput;
  const limit = search?.pageInput?.limit || 100;
  let cursor = "";
  for (let left = limit * (pageThousand - 1); left > 0; left -= 1000) {
    const pageInput = create(PageInputSchema, { limit: Math.min(left, 1000), cursor });
    const answer = await ask({ ...request, searchInput: { ...search, pageInput } } as SearchEntitiesRequest);
    cursor = answer.pageInfo?.endCursor ?? "";
  }
  const pageInput = create(PageInputSchema, { limit, cursor });
  return {
    name: `${name}, page 1,000`,
    requests: [
      toBinary(SearchEntitiesRequestSchema, {
        ...request,
        searchInput: { ...search, pageInput },
      } as SearchEntitiesRequest),
    ],
    steady: false,
  };
}

interface Measured {
  row: string[];
  p50: number;
}

async function measure({ name, requests }: Question): Promise<Measured> {
  const first = decoded(requests[0] as Uint8Array);
  const together = (first.searchInput?.pageInput?.cursor ?? "") !== "";
  const asked: { bytes: Uint8Array; statements: Sent[] }[] = [];
  for (const bytes of requests) asked.push({ bytes, statements: await recorded(bytes) });
  // A server has been asked before: its code is compiled, its statements are prepared on every connection.
  const warmUntil = performance.now() + settings.warmUpMs;
  for (let i = 0; i < 400 && performance.now() < warmUntil; i++) {
    const { bytes, statements } = asked[i % asked.length] as (typeof asked)[number];
    await ask(decoded(bytes));
    await replay(statements, together);
  }
  const service: number[] = [];
  const alone: number[] = [];
  for (let round = 0; round < settings.rounds * Math.ceil(40 / requests.length); round++) {
    for (const { bytes, statements } of asked) {
      const request = decoded(bytes);
      const asService = async () => service.push(await timeMs(() => ask(request)));
      const asStatements = async () => alone.push(await timeMs(() => replay(statements, together)));
      // What comes second finds the rows in the processor's cache.
      for (const one of service.length % 2 === 0 ? [asService, asStatements] : [asStatements, asService]) await one();
    }
  }
  const p50 = at(service, 0.5);
  const total = (await ask(first)).pageInfo?.totalCount;
  const indexes = await indexesOf(asked[0]?.statements ?? []);
  const figures = [p50, at(service, 0.99), at(alone, 0.5)].map((ms) => ms.toFixed(2));
  return { row: [name, String(total), ...figures, (p50 / at(alone, 0.5)).toFixed(2), indexes], p50 };
}

const before = new Map<string, number>();
for (const count of sizes) {
  progress(`fills the tables with ${count} entities`);
  const { ids, madeMs } = await fillEntities(unlimited.sql, owner.id, count);
  console.log(`\n${count} entities; ${madeMs.join(", ")}`);
  console.log(`bytes an entity: ${await bytesAnEntity(sql, count)}`);
  const asked = questions(count, ids).filter(({ name }) => name.includes(settings.only ?? ""));
  const sorted = count === sizes.at(-1) ? asked.filter(({ name }) => name.includes("sorted")) : [];
  // A cursor is asked while it is fresh, as when page after page is read.
  const all = [...asked.map((question) => () => question), ...sorted.map((question) => () => thousandth(question))];
  const rows: string[][] = [];
  for (const next of all) {
    const question = await next();
    progress(question.name);
    const { row, p50 } = await measure(question);
    const earlier = before.get(question.name);
    rows.push([
      ...row.slice(0, -1),
      earlier === undefined || !question.steady ? "" : (p50 / earlier).toFixed(2),
      row.at(-1) ?? "",
    ]);
    before.set(question.name, p50);
  }
  const head = [
    "question",
    "matches",
    "p50 ms",
    "p99 ms",
    "statements alone p50",
    "ratio",
    `to ${sizes[0]}`,
    "indexes",
  ];
  console.log(`\n${table(head, rows)}`);
}
