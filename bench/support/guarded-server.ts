import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "../../test/faults/commands.ts";
import { freePort } from "../../test/faults/server-process.ts";
import type { Version } from "../../test/faults/versions.ts";
import { compiled } from "../../test/support/program.ts";
import { startPostgres } from "./database.ts";
import { postgresCpuMs, processCpuMs } from "./machine.ts";
import { progress } from "./progress.ts";

type Headers = Record<string, string>;

/** Headers of keys of tenants that do not see each other's data: one that is loaded, one that is read, one that has a rule. */
export interface GuardKeys {
  load: Headers;
  read: Headers;
  rule: Headers;
}

/** A server of some version on a PostgreSQL of its own. */
export interface GuardedServer extends AsyncDisposable {
  port: number;
  keys: GuardKeys;
  /** Processor time so far, ms; the server's in steps of 10. */
  cpuMs(): { server: number; postgres: number };
  /** Posts to /v1 as a tenant. @throws for an answer that is not 200. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
  call(tenant: keyof GuardKeys, path: string, body: object): Promise<any>;
}

const nowhere = openSync(devNull, "w");
/** Every server starts within this time. */
const startMsMax = 60_000;
/** Characters that are kept of what a server complains of. */
const saidMax = 10_000;
/** How long it may take to stop. */
const stopMsMax = 20_000;

/** Starts a version as an operator does, with one serving process; it logs each request, to nowhere. */
export async function startGuarded({ tree, knows, version }: Version): Promise<GuardedServer> {
  await using starting = new AsyncDisposableStack();
  const { url, dir, pid } = starting.use(await startPostgres("shared"));
  const main = [join(tree, "src/main.ts"), join(tree, "dist/src/main.js")].find(existsSync) ?? "";
  const own = join(tree, "node_modules/node/bin/node");
  const node = existsSync(own) ? own : process.execPath;
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: url,
    BELFRY_DATA_DIR: dir,
    BELFRY_HOST: "127.0.0.1",
    BELFRY_PORT: String(port),
    BELFRY_PLAINTEXT: "1",
    BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
    ...(knows("BELFRY_PROCESSES") && { BELFRY_PROCESSES: "1" }),
    // What waits is to be measured, not refused.
    ...(knows("BELFRY_INGEST_WAIT") && { BELFRY_INGEST_WAIT: "30s" }),
    NODE_ENV: "production",
    MALLOC_ARENA_MAX: "2",
    NODE_COMPILE_CACHE: compiled,
  };
  const child = spawn(node, ["--max-semi-space-size=16", main, "serve"], {
    cwd: dir,
    env,
    // The channel closes when this process dies, which a server takes as SIGTERM.
    stdio: ["ignore", nowhere, "pipe", "ipc"],
  });
  let said = "";
  child.stderr?.on("data", (text) => {
    said = `${said}${text}`.slice(-saidMax);
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const ended = once(child, "exit");
  starting.defer(async () => {
    child.kill("SIGTERM");
    await Promise.race([ended, sleep(stopMsMax, undefined, { ref: false }).then(kill)]);
    await ended;
    process.off("exit", kill);
  });

  const deadlineMs = performance.now() + startMsMax;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (answer?.status === 200) break;
    if (child.exitCode !== null || performance.now() > deadlineMs)
      throw new Error(`${version} does not start: ${said}`);
    await sleep(50);
  }
  async function keyOf(name: string): Promise<Headers> {
    const said = await runCommand(main, url, ["tenants", "create", name], {
      env: { BELFRY_DATA_DIR: dir, NODE_COMPILE_CACHE: compiled },
    });
    const key = said.trim().split("\n").at(-1);
    if (key === undefined || /\s/.test(key)) throw new Error(`${version} prints no key: ${said}`);
    return { "service-api-key": key };
  }
  const keys = { load: await keyOf("load"), read: await keyOf("read"), rule: await keyOf("rule") };
  async function call(tenant: keyof GuardKeys, path: string, body: object) {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/${path}`, {
      method: "POST",
      headers: { ...keys[tenant], "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${version}: ${path} answers ${answer.status}: ${text}`);
    return JSON.parse(text);
  }
  progress(`${version} has started from ${tree}`);
  const running = starting.move();
  return {
    port,
    keys,
    call,
    cpuMs: () => ({ server: processCpuMs(child.pid), postgres: postgresCpuMs(pid) }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
