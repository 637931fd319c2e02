#!/usr/bin/env node
// Runs the server with the Node that it is made for, which `npm ci` installs beside the other packages. Plain JavaScript
// for any Node from 20 on: an older one could only answer src/main.ts with a syntax error.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

const root = import.meta.dirname ?? new URL(".", import.meta.url).pathname;

/** A checkout runs its sources; the npm package has them as plain JavaScript (scripts/pack.ts). */
const checkout = existsSync(join(root, "src/main.ts"));
const main = join(root, checkout ? "src/main.ts" : "dist/src/main.js");
const install = checkout ? "npm ci" : "npm install";

/** Ctrl-C reaches this process twice, from the terminal and from npm, which passes it on: within this time it is one. */
const oneSignalMs = 300;

const readPackage = (path) => JSON.parse(readFileSync(path, "utf8"));

/** The Node that is installed beside the other packages; undefined when those are not installed. */
function installedNode() {
  try {
    const path = createRequire(import.meta.url).resolve("node/package.json");
    return { file: join(dirname(path), "bin/node"), version: readPackage(path).version };
  } catch {
    return undefined;
  }
}

/** The Node to run on, or why the server cannot run here, and the cure. */
function findNode() {
  const wanted = readPackage(join(root, "package.json")).dependencies.node;
  const found = installedNode();
  if (found === undefined) return { trouble: `its packages are not installed. Run:  ${install}` };
  if (found.version !== wanted) {
    return { trouble: `it needs Node ${wanted}, and ${found.version} is installed beside it. Run:  ${install}` };
  }
  if (existsSync(found.file)) return { node: found.file };
  if (process.versions.node === wanted) return { node: process.execPath };
  return {
    trouble:
      `Node ${wanted}, which it runs on, is missing in node_modules: npm has not run the install script of the ` +
      `package \`node\`. Run:  ${install} --ignore-scripts=false`,
  };
}

/**
 * Where Node keeps what it has compiled for the next start (docs/decisions/0063): beside the data, where nobody else writes.
 * undefined for other commands, which may run as another user, and before there is a data directory.
 */
function compiledDir() {
  if (process.argv[2] !== "serve") return undefined;
  const dir = join(resolve(process.env.BELFRY_DATA_DIR || ".belfry"), "compiled");
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    if (error.code !== "EEXIST") return undefined;
  }
  return dir;
}

/** A server that dies after it has served is started again, but not for ever: so many times within this time. */
const againMax = 5;
const againWithinMs = 600_000;
const pauseMs = 1000;
const pauseMsMax = 60_000;
/** A server ends with it that has itself started what died, again and again. */
const gaveUpCode = 70;

function run(node) {
  // Fewer collections of young objects, each of them longer (docs/decisions/0038).
  const args = ["--max-semi-space-size=16", ...process.execArgv, main, ...process.argv.slice(2)];
  // glibc keeps memory to itself for each thread that ever took some; of large bodies that adds up (docs/decisions/0015).
  const compiled = compiledDir();
  const env = { MALLOC_ARENA_MAX: "2", ...(compiled && { NODE_COMPILE_CACHE: compiled }), ...process.env };
  const diedMs = [];
  let child;
  let stopAsked = false;
  let resting;
  let hasServed = false;
  let failedStarts = 0;
  // A full disk, or a log that nobody reads, must not end what starts the server again.
  process.stderr.on("error", () => {});

  /** Ends as the server has ended. */
  function end(code, signal) {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }

  function start() {
    resting = undefined;
    let served = false;
    // A process group of its own: it hears of a signal from here alone, once.
    // The channel closes when this process is killed, which the server takes as SIGTERM.
    child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"], detached: true, env });
    child.on("message", (message) => {
      served ||= message === "serving";
      if (served) [hasServed, failedStarts] = [true, 0];
    });
    child.on("error", (error) => {
      process.stderr.write(`belfry: cannot run ${node}: ${error.message}. Run:  ${install}\n`);
      process.exit(1);
    });
    child.on("exit", (code, signal) => {
      const now = Date.now();
      while (diedMs.length > 0 && now - diedMs[0] > againWithinMs) diedMs.shift();
      if (stopAsked || !hasServed || (signal === null && (code === 0 || code === gaveUpCode))) return end(code, signal);
      // What it says itself that it cannot start for, such as a full disk, may pass.
      const cannotStart = !served && signal === null && code === 1;
      if (!cannotStart && diedMs.length >= againMax) return end(code, signal);
      const waitMs = cannotStart ? Math.min(pauseMs * 2 ** failedStarts++, pauseMsMax) : pauseMs * 2 ** diedMs.length;
      if (!cannotStart) diedMs.push(now);
      process.stderr.write(
        cannotStart
          ? `belfry: the server, which has served before, cannot start; it is tried again in ${waitMs / 1000} s\n`
          : `belfry: the server has died (${signal ?? `exit code ${code}`}); it is started again in ${waitMs / 1000} s, ` +
              `${diedMs.length} of ${againMax} times in ${againWithinMs / 60_000} minutes\n`,
      );
      resting = { end: () => end(code, signal), timer: setTimeout(start, waitMs) };
    });
  }

  function stop(signal) {
    stopAsked = true;
    if (resting === undefined) return child.kill(signal);
    clearTimeout(resting.timer);
    resting.end();
  }

  const last = new Map();
  const pass = (received, sent = received) => {
    process.on(received, () => {
      const now = Date.now();
      if (now - (last.get(received) ?? 0) > oneSignalMs) stop(sent);
      last.set(received, now);
    });
  };
  pass("SIGINT");
  pass("SIGTERM");
  pass("SIGQUIT");
  // The terminal is gone: stop in order.
  pass("SIGHUP", "SIGTERM");
  // npm, or the shell that it runs scripts in, was killed: what was passed to it never comes here.
  const parent = process.ppid;
  const watching = setInterval(() => {
    if (process.env.npm_lifecycle_event === undefined || process.ppid === parent) return;
    clearInterval(watching);
    stop("SIGTERM");
  }, 500).unref();
  start();
}

const { node, trouble } = findNode();
if (node !== undefined) {
  run(node);
} else {
  process.stderr.write(`belfry cannot start: ${trouble}\n`);
  process.exitCode = 1;
}
