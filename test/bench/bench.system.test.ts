import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { comparedCommit } from "../../bench/support/compared-commit.ts";
import { type GuardRow, guardTable, slower } from "../../bench/support/guard-table.ts";
import { differences } from "../../bench/support/results.ts";
import { nightly } from "../support/cases.ts";
import { temporaryDir } from "../support/database.ts";

/** Each lasting bench, as short as it can be. */
const benches: Readonly<Record<string, string>> = {
  read: "--rounds 1 --seconds 0.3 --warm-up 0.2",
  put: "--rounds 1 --seconds 0.2",
  batches: "--rounds 1 --seconds 0.3",
  clients: "--rounds 1 --seconds 1",
  fresh: "--seconds 3 --restarts 1 --only ones",
  reads: "--rounds 1 --seconds 0.05 --warm-up 0.05",
  entities: "--rounds 1 --size 2000 --warm-up 0.05",
  events: "--size 2000 --days 1 --rounds 1 --seconds 1 --hosts 200",
  metrics: "--rounds 1 --seconds 0.2 --stored 10 --only ingest",
  notify: "--events 10 --seconds 1 --one 20 --ten 20",
  overload: "--seconds 1",
  hostile: "--seconds 1 --entities 500 --streams 50 --only idle",
  scaling: "--rounds 1 --seconds 0.2",
  processes: "--rounds 1 --seconds 0.2",
  console: "--events 200 --rounds 1 --slower 1",
  guard: "HEAD --rounds 1 --seconds 0.1",
};
/** Those that need what a machine may lack, and what that is. */
const apart: Readonly<Record<string, string>> = {
  citus: "a package of PostgreSQL with Citus",
  small: "root, and control groups of Linux",
};
const main = new URL("../../bench/main.ts", import.meta.url).pathname;

function start(dir: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TMPDIR: dir, NODE_ENV: "production", ...env },
    detached: true,
  });
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), "SIGTERM");
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
  return { child, output: () => output };
}

const ended = async (child: ChildProcess) => (await once(child, "close"))[0] as number;
/** Processes whose command line names a folder. */
const runningIn = (dir: string) =>
  execFileSync("ps", ["-ww", "-eo", "pid=,command="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(dir));

test("each bench of the folder is tried here, or needs what a machine may lack", () => {
  const files = readdirSync(join(main, "..")).filter((name) => name.endsWith(".ts") && name !== "main.ts");
  const known = [...Object.keys(benches), ...Object.keys(apart)];
  expect(files.map((name) => name.slice(0, -3)).sort()).toEqual(known.sort());
  const readme = readFileSync(join(main, "../README.md"), "utf8");
  for (const name of known) expect(readme).toContain(`| \`${name}\` |`);
});

/** Lets a bench run to its end, which leaves no process and no folder. Returns what it has printed. */
async function whole(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const dir = temporaryDir();
  const { child, output } = start(dir, args, env);
  expect(await ended(child), output()).toBe(0);
  expect(output()).toMatch(/\d\.\d s {2}PostgreSQL has started/);
  expect(readdirSync(dir)).toEqual([]);
  expect(runningIn(dir)).toEqual([]);
  return output();
}

// The gate runs one of them, below.
test.runIf(nightly).each(Object.entries(benches))(
  "%s runs, prints progress, and leaves no process and no folder",
  async (name, options) => void (await whole([name, ...options.split(" ")])),
);

test.each(["SIGINT", "SIGTERM", "SIGKILL of the bench"])("ended by %s it leaves no process, no folder", async (how) => {
  const dir = temporaryDir();
  const { child, output } = start(dir, ["notify", "--seconds", "60"]);
  await expect.poll(output).toContain("PostgreSQL has started");
  if (how === "SIGINT")
    process.kill(-(child.pid as number), "SIGINT"); // as a terminal does
  else if (how === "SIGTERM") child.kill("SIGTERM");
  else execFileSync("pkill", ["-KILL", "-P", String(child.pid)]);
  expect(await ended(child), output()).not.toBe(0);
  expect(readdirSync(dir)).toEqual([]);
  await expect.poll(() => runningIn(dir)).toEqual([]);
});

test("a run is kept with its date and machine, and the next one prints what differs from it", async () => {
  const kept = temporaryDir();
  const args = ["reads", "--rounds", "1", "--seconds", "0.05", "--warm-up", "0.05", "--only", "one credential"];
  const run = (more: readonly string[]) => whole([...args, ...more], { BENCH_RESULTS: kept });
  expect(await run(["--keep"])).not.toContain("since");
  const [file = "", ...others] = readdirSync(kept);
  expect(others).toEqual([]);
  expect(file).toMatch(/^reads-\d{4}-\d\d-\d\dT[\d-]+Z\.json$/);
  const { machine, ...first } = JSON.parse(readFileSync(join(kept, file), "utf8"));
  expect(first).toMatchObject({ bench: "reads", args: args.slice(1), tables: [{ rows: expect.any(Array) }] });
  expect(machine).toMatch(/^\d+ × .+, \d+ GiB, Node v\d+\.\d+\.\d+$/);
  expect(await run([])).toContain(`since ${first.date} (${machine}):\n`);
  expect(readdirSync(kept)).toEqual([file]);
});

test("a table is compared with the one that was kept, number by number", () => {
  const head = ["", "items/s", "p50 ms", "to"];
  const before = { head, rows: [["put", "1 000", "2.0", "x"]] };
  const now = {
    head,
    rows: [
      ["put", "1 500", "2.0", "x"],
      ["new", "1", "1", "x"],
    ],
  };
  expect(differences(now, before)).toEqual(["  put, items/s: 1000 → 1500 (+50 %)"]);
  expect(differences(now, undefined)).toEqual([]);
});

test("a row without a name is compared with its own, not with that of another row", () => {
  const table = (...ratios: string[]) => ({
    head: ["", "ratio"],
    rows: ratios.map((ratio, i) => [i % 2 === 0 ? `competitor ${i / 2}` : "", ratio]),
  });
  expect(differences(table("1", "2", "3", "5"), table("1", "2", "3", "4"))).toEqual([
    "  competitor 1 (2), ratio: 4 → 5 (+25 %)",
  ]);
});

const figures = (serverUs: number, postgresUs: number, p50Ms: number) => ({ serverUs, postgresUs, p50Ms });

test("the guard calls slower what is worse by 15 % in all rounds, and nothing that is in most of them", () => {
  const row: GuardRow = {
    name: "one event",
    now: [figures(200, 116, 3), figures(230, 116, 3), figures(300, 114, Number.NaN)],
    before: [figures(100, 100, 1), figures(200, 100, 1), figures(100, 100, 1)],
  };
  expect(slower(row)).toEqual(["serverUs"]);
  const [, , line = ""] = guardTable([row]).split("\n");
  expect(line).toMatch(/^one event +230 +100 +2\.00 +116 +100 +1\.16 .*slower: server$/);
});

test("the guard compares with a commit that this clone holds, and says which it does not hold", () => {
  expect(comparedCommit("HEAD")).toMatch(/^[0-9a-f]{40}$/);
  expect(() => comparedCommit("v0.0.0-none")).toThrow("this clone holds no commit v0.0.0-none");
});
