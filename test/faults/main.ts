/**
 * `npm run faults -- --minutes N [--seed S] [--scene NAME]`: scene after scene, each with a new seed, until the time is
 * up or something is wrong. `--all` plays everything at once for all of the time; FAULTS_DIR on a small disk lets it fill
 * that, and TEST_CITUS makes it a Citus cluster, whose package it names. `--scene upgrade --before PLACE` upgrades from an earlier version: a commit, a tag, a checkout, or an unpacked npm
 * package; with `--defaults` its servers have the settings that an operator finds. `--suite [FOLDER …]` runs all other
 * tests, or those of folders, over a slow way to PostgreSQL instead.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { playEverything } from "./everything.ts";
import { playExports } from "./exports.ts";
import { failpoints } from "./failpoints.ts";
import { playNotifications } from "./notifications.ts";
import { playPauses } from "./pauses.ts";
import { clear, clearPlaces, place } from "./place.ts";
import { playPoints, playPointsOfTwo } from "./points.ts";
import { playProcesses } from "./processes.ts";
import { playPrometheus } from "./prometheus.ts";
import { fine, openProxy } from "./proxy.ts";
import { random } from "./random.ts";
import { type Play, playFailpoints, playKills, playTwoServers, twoServersRounds } from "./scenes.ts";
import { killServers } from "./server-process.ts";
import { playUpgrade } from "./upgrade.ts";
import { playWatches } from "./watches.ts";
import { playWindows } from "./windows.ts";

const scenes: Record<string, (play: Play) => Promise<number>> = {
  "two-servers": playTwoServers,
  failpoints: playFailpoints,
  kills: playKills,
  windows: playWindows,
  watches: playWatches,
  notifications: playNotifications,
  points: playPoints,
  "points-of-two": playPointsOfTwo,
  prometheus: playPrometheus,
  pauses: playPauses,
  processes: playProcesses,
  exports: playExports,
  everything: playEverything,
  upgrade: playUpgrade,
};
/** A scene ends, and the next begins with a new seed, after this many rounds. */
const roundsOf: Record<string, number> = {
  "two-servers": twoServersRounds(),
  failpoints: failpoints().length,
  kills: 10,
  windows: 1,
  watches: 10,
  notifications: 1,
  points: 8,
  "points-of-two": 6,
  prometheus: 20,
  pauses: 4,
  processes: 6,
  exports: 1,
  everything: 20,
  upgrade: 1,
};

interface Options extends Pick<Play, "before" | "defaults"> {
  all: boolean;
}

async function play(minutes: number, firstSeed: number, names: string[], options: Options): Promise<void> {
  const { all, ...more } = options;
  const endMs = performance.now() + minutes * 60_000;
  const played: Record<string, number> = {};
  for (let seed = firstSeed; performance.now() < endMs; seed++) {
    const name = names[(seed - firstSeed) % names.length] as string;
    console.log(`${name}, seed ${seed}`);
    try {
      const until = { rounds: all ? Infinity : (roundsOf[name] ?? 1), endMs };
      played[name] = (played[name] ?? 0) + ((await scenes[name]?.({ seed, until, say: console.log, ...more })) ?? 0);
    } catch (error) {
      console.error(`${(error as Error).message}\n\nagain: npm run faults -- --seed ${seed} --scene ${name}`);
      process.exitCode = 1;
      return;
    }
  }
  const told = Object.entries(played).map(
    ([name, rounds]) => `${rounds} ${rounds === 1 ? "round" : "rounds"} of ${name}`,
  );
  console.log(`${told.join(", ")}: all that was acknowledged is there, once, and as it must be`);
}

/** What ends the run ends what it has started: servers, PostgreSQL, the tests of `--suite`. */
let tests: ChildProcess | undefined;
for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 })) {
  process.on(signal, () => {
    if (tests !== undefined) return void tests.kill(signal as NodeJS.Signals); // and the run ends in order
    killServers();
    clearPlaces();
    process.exit(code);
  });
}

async function playSuite(seed: number, folders: string[]): Promise<void> {
  const dataDir = await place();
  const quiet = { info() {}, warn() {}, error: console.error };
  const postgres = await startEmbedded({ dataDir, log: quiet, durable: false, connectionsMax: 300 });
  const way = await openProxy(postgres.url, random(seed));
  way.weather = { ...fine, delayMsMax: 4 };
  console.log(`the suite over a way of up to 4 ms, seed ${seed}`);
  try {
    const env = { ...process.env, TEST_DATABASE_URL: way.url };
    tests = spawn("vitest", ["run", ...folders, "--exclude", "test/faults/**", "--testTimeout", "120000"], {
      env,
      stdio: "inherit",
    });
    [process.exitCode] = (await once(tests, "exit")) as [number];
  } finally {
    await way.close();
    await postgres.stop("immediate");
    await clear(dataDir);
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
    scene: { type: "string" },
    suite: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    before: { type: "string" },
    defaults: { type: "boolean", default: false },
  },
});
const scene = values.all ? "everything" : values.scene;
const names = scene === undefined ? Object.keys(scenes) : [scene];
if (names.some((name) => !(name in scenes))) throw new Error(`scenes are ${Object.keys(scenes).join(", ")}`);
await (values.suite
  ? playSuite(Number(values.seed), positionals)
  : play(Number(values.minutes), Number(values.seed), names, values));
// Of connections to servers that were killed something may be left, which Node waits for at its end.
process.exit();
