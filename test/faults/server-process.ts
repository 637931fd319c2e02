import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Turn } from "../support/loop-turns.ts";
import { compiled, program } from "../support/program.ts";
import { servingOf } from "../support/serving-processes.ts";
import type { Faults } from "./preload.ts";

const root = join(import.meta.dirname, "../..");

/** The servers of this process that run. */
const running = new Set<ChildProcess>();

/** kill -9 of all servers that this process has started. */
export function killServers(): void {
  for (const server of running) {
    // One that stands still does not notice that its owner has died.
    for (const pid of servingOf(server.pid ?? -1)) signal(pid, "SIGKILL");
    server.kill("SIGKILL");
  }
}

/** Sends a signal to a process, which may have ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has.
  }
}

/** What a server is started with beside its own settings. */
interface Start {
  /** Where its version lies: a checkout, or the npm package unpacked; this checkout when absent. */
  tree?: string;
  env?: Record<string, string>;
}

/** A server in a process of its own, as an operator starts it; it keeps its address when it is started again. */
export interface ServerProcess {
  readonly url: string;
  readonly pid: number | undefined;
  /** All its processes: where several serve, the owner of the port comes first. */
  readonly pids: readonly number[];
  /** Lines of its log that tell of an answer with code 13, and of a process that ended by itself. */
  readonly complaints: string[];
  /** Failpoints that it has come by, in all its lives. */
  readonly reached: ReadonlySet<string>;
  /** Resolves when it serves. @throws what it said when it ended instead. */
  start(faults?: Faults, how?: Start): Promise<void>;
  /** kill -9. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Resolves when the process has ended by itself. */
  ended(): Promise<void>;
  /** All its processes. */
  pause(): void;
  resume(): void;
  /** From now on these faults happen in all its processes; answers what its own clock says, ms. */
  arm(faults: Faults): Promise<number>;
  /** The longest turn of its event loop since the last call; the first one begins to measure. */
  longestTurn(): Promise<Turn>;
  /** What it holds in memory after a collection. */
  heldBytes(): Promise<number>;
  /** In order, as an operator stops it. */
  stop(): Promise<void>;
}

/** What the process answers to messages. */
interface Answers {
  clockMs: number;
  heldBytes: number;
  longestTurn: Turn;
}

/** What starts a version that is not this checkout. */
export function entryOf(tree: string): string | undefined {
  if (tree === root) return undefined;
  return ["bundle/main.mjs", "src/main.ts", "dist/src/main.js"]
    .map((path) => join(tree, path))
    .find((path) => existsSync(path));
}

/** A port of loopback that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Settings of a server that refuses nothing for time, however busy the machine is. */
export const patient = (limits: object = {}): Record<string, string> => ({
  BELFRY_INGEST_WAIT: "10m",
  TEST_LIMITS: JSON.stringify({
    statementTimeoutMs: 300_000,
    lockTimeoutMs: 300_000,
    streamIdleMs: 600_000,
    ...limits,
  }),
});

/** With a file, all that it writes is kept there. */
export async function serverProcess(env: Record<string, string>, logFile?: string): Promise<ServerProcess> {
  const [port, main] = [await freePort(), await program()];
  const complaints: string[] = [];
  const reached = new Set<string>();
  let child: ChildProcess | undefined;
  let exited: Promise<void> = Promise.resolve();
  let expected = false;
  const pids = () => (child?.pid === undefined ? [] : [child.pid, ...servingOf(child.pid)]);

  function keep(line: string) {
    if (/"level":[56]0/.test(line)) complaints.push(line);
  }

  async function start(faults: Faults = {}, { tree = root, env: more = {} }: Start = {}) {
    expected = false;
    let said = "";
    const started = spawn(
      process.execPath,
      ["--import", join(import.meta.dirname, "preload.ts"), entryOf(tree) ?? main, "serve"],
      {
        cwd: tree,
        env: {
          PATH: process.env.PATH,
          BELFRY_HOST: "127.0.0.1",
          BELFRY_PORT: String(port),
          BELFRY_PLAINTEXT: "1",
          BELFRY_LOG_LEVEL: "warn",
          ...(tree === root && { BELFRY_SHUTDOWN_TIMEOUT: "500ms", BELFRY_PROCESSES: "1" }),
          NODE_COMPILE_CACHE: compiled,
          ...env,
          ...more,
          FAULTS: JSON.stringify(faults),
        },
        stdio: ["ignore", "pipe", "pipe", "ipc"],
      },
    );
    child = started;
    running.add(started);
    started.once("exit", () => running.delete(started));
    const { promise: serving, resolve } = Promise.withResolvers<void>();
    const kept = (text: Buffer | string) => {
      if (logFile !== undefined) appendFileSync(logFile, text);
    };
    kept(`${new Date().toISOString()} starts as process ${started.pid}\n`);
    const onText = (text: Buffer) => {
      kept(text);
      said += text;
      if (said.includes("Belfry serves at")) resolve();
      const lines = said.split("\n");
      said = lines.pop() as string;
      lines.forEach(keep);
    };
    started.stdout?.on("data", onText);
    started.stderr?.on("data", (text: Buffer) => {
      kept(text);
      said += text;
    });
    started.on("message", (message: { reached?: string }) => {
      if (message.reached) reached.add(message.reached);
    });
    exited = once(started, "exit").then(([code, signal]) => {
      if (child === started) child = undefined;
      if (!expected && signal !== "SIGKILL") complaints.push(`ended by itself with ${code ?? signal}: ${said}`);
    });
    await Promise.race([
      serving,
      exited.then(() => {
        throw new Error(`the server did not start: ${said}`);
      }),
      sleep(300_000, undefined, { ref: false }).then(() => {
        throw new Error(`the server does not come up: ${said}`);
      }),
    ]);
  }

  /** Sends the process a message; resolves with the member of its answer. */
  async function ask<Name extends keyof Answers>(message: object | string, name: Name): Promise<Answers[Name]> {
    const asked = child as ChildProcess;
    const { promise, resolve } = Promise.withResolvers<Answers[Name]>();
    const listen = (answer: Partial<Answers>) => {
      const value = answer[name];
      if (value === undefined) return;
      asked.off("message", listen);
      resolve(value);
    };
    asked.on("message", listen);
    asked.send(message);
    return await promise;
  }

  return {
    url: `http://127.0.0.1:${port}`,
    get pid() {
      return child?.pid;
    },
    get pids() {
      return pids();
    },
    complaints,
    reached,
    start,
    async kill() {
      child?.kill("SIGKILL");
      await exited;
    },
    ended: () => exited,
    pause() {
      for (const pid of pids()) signal(pid, "SIGSTOP");
    },
    resume() {
      for (const pid of pids()) signal(pid, "SIGCONT");
    },
    arm: (faults) => ask(faults, "clockMs"),
    longestTurn: () => ask("longestTurn", "longestTurn"),
    heldBytes: () => ask("heldBytes", "heldBytes"),
    async stop() {
      expected = true;
      child?.kill("SIGCONT");
      child?.kill("SIGTERM");
      const late = setTimeout(() => {
        complaints.push("did not stop within 30 s");
        child?.kill("SIGKILL");
      }, 30_000);
      await exited;
      clearTimeout(late);
    },
  };
}
