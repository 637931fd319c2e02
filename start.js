// Runs the server with the Node that it is made for, which `npm ci` installs beside the other packages. Plain JavaScript
// for any Node from 20 on: an older one could only answer src/main.ts with a syntax error.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = import.meta.dirname ?? new URL(".", import.meta.url).pathname;

/** Ctrl-C reaches this process twice, from the terminal and from npm, which passes it on: within this time it is one. */
const oneSignalMs = 300;

const readVersion = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));

/** Why the server cannot run here, and the cure; undefined when it can. */
function trouble(node) {
  const wanted = readVersion("package.json").dependencies.node;
  if (!existsSync(join(root, "node_modules/node/package.json"))) {
    return "its packages are not installed. Run:  npm ci";
  }
  const found = readVersion("node_modules/node/package.json").version;
  if (found !== wanted) return `it needs Node ${wanted}, and ${found} is installed beside it. Run:  npm ci`;
  if (!existsSync(node)) {
    return (
      `Node ${wanted}, which it runs on, is missing in node_modules: npm has not run the install script of the ` +
      "package `node`. Run:  npm ci --ignore-scripts=false"
    );
  }
  return undefined;
}

function run(node) {
  // Everything waits while young objects are collected, the longer the more of them there are (docs/decisions/0015).
  const args = ["--max-semi-space-size=4", ...process.execArgv, join(root, "src/main.ts"), ...process.argv.slice(2)];
  // A process group of its own: it hears of a signal from here alone, once.
  // The channel closes when this process is killed, which the server takes as SIGTERM.
  // glibc keeps memory to itself for each thread that ever took some; of large bodies that adds up (docs/decisions/0015).
  const env = { MALLOC_ARENA_MAX: "2", ...process.env };
  const child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"], detached: true, env });
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
  child.on("error", (error) => {
    process.stderr.write(`belfry: cannot run ${node}: ${error.message}. Run:  npm ci\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const node = join(root, "node_modules/node/bin/node");
const reason = trouble(node);
if (reason === undefined) {
  run(node);
} else {
  process.stderr.write(`belfry cannot start: ${reason}\n`);
  process.exitCode = 1;
}
