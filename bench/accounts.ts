// What /healthz answers while 200 accounts are being created all the time: hashing passwords must not hold up the others.
import http from "node:http";
import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "./support/child.ts";
import { startDatabase } from "./support/database.ts";
import { machineFacts, move } from "./support/machine.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const atOnce = 200;

const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 5, countMs: 5000 });
await using stack = new AsyncDisposableStack();
process.once("SIGINT", () => void stack.disposeAsync().finally(() => process.exit(130)));
const database = stack.use(await startDatabase());
const server = stack.use(startChild("server", "servers/belfry.ts", database.env));
const { port } = await server.ask<{ port: number }>();
move(process.pid, "generator");
const agent = stack.adopt(new http.Agent({ keepAlive: true, maxSockets: 1 }), (each) => each.destroy());
const session = stack.adopt(http2.connect(`http://127.0.0.1:${port}`), (each) => each.destroy());

/** How long one GET /healthz takes, ms. */
function healthz(): Promise<number> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    const request = http.get({ host: "127.0.0.1", port, path: "/healthz", agent }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`/healthz answers ${answer.statusCode}`));
      answer.resume().once("end", () => resolve(performance.now() - startMs));
    });
    request.once("error", reject);
  });
}

let made = 0;

function create(): Promise<void> {
  made += 1;
  const headers = {
    ":method": "POST",
    ":path": "/v1/user-mgmt/end-user-accounts",
    "content-type": "application/json",
    ...database.key,
  };
  const stream = session.request(headers);
  stream.end(JSON.stringify({ user: { email: `person.${made}@example.com`, password: "Correct-horse-7" } }));
  return new Promise((resolve, reject) => {
    stream.once("error", reject);
    stream.once("response", ({ ":status": status }) => {
      if (status !== 200) reject(new Error(`a create answers ${status}`));
      stream.resume().once("end", resolve);
    });
  });
}

/** Times of /healthz, asked every 2 ms for as long, while `others` works beside it. */
async function probe(forMs: number, others: (going: () => boolean) => Promise<unknown>): Promise<number[]> {
  const startMs = performance.now();
  const going = () => performance.now() - startMs < forMs;
  const beside = others(going);
  const times: number[] = [];
  while (going()) {
    times.push(await healthz());
    await sleep(2);
  }
  await beside;
  return times;
}

const idle = async () => {};
const creates = (going: () => boolean) =>
  Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (going()) await create();
    }),
  );

const quantile = (times: number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1] ?? Number.NaN;

console.log(`${commandOf("accounts", args)}\n`);
for (const line of machineFacts(database.version)) console.log(line);
console.log(
  `${atOnce} creates in work all the time, one /healthz each 2 ms; rounds of ${settings.countMs / 1000} s.\n`,
);
for (const others of [idle, creates]) await probe(settings.warmUpMs / 2, others);
const rows: string[][] = [];
for (let round = 1; round <= settings.rounds; round++) {
  const alone = await probe(settings.countMs, idle);
  const before = made;
  const startMs = performance.now();
  const beside = await probe(settings.countMs, creates);
  const perSec = (made - before) / ((performance.now() - startMs) / 1000);
  const ms = (part: number) => [quantile(alone, part), quantile(beside, part)] as const;
  const [p50, p99] = [ms(0.5), ms(0.99)];
  rows.push([
    String(round),
    ...[...p50, ...p99].map((each) => each.toFixed(2)),
    (p99[1] / p99[0]).toFixed(1),
    perSec.toFixed(0),
  ]);
}
const head = ["round", "p50 ms idle", "p50 ms beside", "p99 ms idle", "p99 ms beside", "p99 ratio", "creates/s"];
console.log(table(head, rows));
