// This tree beside another commit, in turns: what has become slower. `npm run bench -- guard [COMMIT] [options]`
import { ownVersion, versionBefore } from "../test/faults/versions.ts";
import { comparedCommit, describeCommit } from "./support/compared-commit.ts";
import { startGenerator } from "./support/generator.ts";
import { type GuardLine, guardLoads } from "./support/guard-lines.ts";
import { type Figures, type GuardRow, guardTable } from "./support/guard-table.ts";
import { webhookLine } from "./support/guard-webhooks.ts";
import { type GuardedServer, startGuarded } from "./support/guarded-server.ts";
import { machineFacts } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import { commandOf, settingsOf } from "./support/settings.ts";

/** Some processor time is counted in steps of 10 ms: less of it than this is no figure. */
const cpuMsMin = 20;
const warmUpsMax = 20;

const args = process.argv.slice(2);
const [first = "-"] = args;
const named = first.startsWith("-") ? undefined : first;
const settings = settingsOf(named === undefined ? args : args.slice(1), { rounds: 5, countMs: 1200 });
const commit = comparedCommit(named);

/** Lets a line run; counts the processor time of an item on both sides of it. */
async function measure(line: GuardLine, server: GuardedServer, countMs: number): Promise<Figures> {
  const before = server.cpuMs();
  const { items, p50Ms, bad } = await line.run(server, countMs);
  if (bad > 0) throw new Error(`${line.name}: ${bad} answers were not good`);
  const after = server.cpuMs();
  const us = (name: "server" | "postgres") => {
    const tookMs = after[name] - before[name];
    return tookMs < cpuMsMin ? Number.NaN : (tookMs * 1000) / items;
  };
  return { serverUs: us("server"), postgresUs: us("postgres"), p50Ms };
}

/** Lets a line run until all answers are good: a server refuses some while what is sent at first makes entities and series. */
async function warmUp(line: GuardLine, server: GuardedServer): Promise<void> {
  let left = warmUpsMax;
  while ((await line.run(server, settings.countMs)).bad > 0) {
    left -= 1;
    if (left === 0) throw new Error(`${line.name}: answers are not good, however often it is tried`);
  }
}

await using stack = new AsyncDisposableStack();
console.log(`${commandOf("guard", args)}\n`);
console.log(`${machineFacts("", true)[0]}; Node ${process.version}`);
progress(`builds ${describeCommit(commit)}`);
const other = versionBefore(commit, true);
stack.defer(() => other.remove());
const generator = stack.use(startGenerator("node", true, "shared"));
const points = stack.use(startGenerator("node", true, "shared"));
const webhooks = stack.use(await webhookLine());
const loads = guardLoads(generator, points);
const now = stack.use(await startGuarded(ownVersion()));
const before = stack.use(await startGuarded(other));
for (const server of [now, before]) {
  await loads.fill(server);
  await webhooks.start(server);
}
const lines = [...loads.lines, webhooks.line].filter(({ name }) => name.includes(settings.only ?? ""));
for (const line of lines) {
  progress(`warms up: ${line.name}`);
  for (const server of [now, before]) await warmUp(line, server);
}
const rows = lines.map(({ name }) => ({ name, now: [] as Figures[], before: [] as Figures[] }) satisfies GuardRow);
for (let round = 0; round < settings.rounds; round++) {
  progress(`round ${round + 1} of ${settings.rounds}`);
  for (let i = 0; i < lines.length; i++) {
    const place = (i + round) % lines.length;
    const [line, row] = [lines[place] as GuardLine, rows[place] as (typeof rows)[number]];
    // One after the other, and the other way round the next time.
    const turns = [
      async () => row.now.push(await measure(line, now, settings.countMs)),
      async () => row.before.push(await measure(line, before, settings.countMs)),
    ];
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
}
console.log(`
this tree beside ${describeCommit(commit)}, each with a PostgreSQL of its own
medians of ${settings.rounds} rounds of ${settings.countMs / 1000} s in turns; processor time an item; ratio: this tree to the other

${guardTable(rows)}

slower: worse by 15 % in each of the rounds`);
