import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A server as `npm start` makes it, with its processes. */
export interface MachineProcess extends AsyncDisposable {
  readonly port: number;
  /** From the first of its serving processes that serves to the last. */
  startSpreadMs(): number;
  /** Processor time of all its processes so far, µs, in steps of 10,000. */
  cpuUs(): number;
  /** Resident memory of each, MB: the owner of the port first, where there is one. */
  memory(): number[];
}

const main = join(import.meta.dirname, "../../src/main.ts");
const pageBytes = 4096;

/** The numbers of /proc after a process's name: state, parent, … */
function statOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop()?.split(" ") ?? [];
}

function processesOf(owner: number): number[] {
  const children = readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && Number(statOf(Number(name))[1]) === owner;
    } catch {
      return false; // it has ended
    }
  });
  return [owner, ...children.map(Number)];
}

/** Starts one on a database; its log is read for when it serves. */
export async function startMachineProcess(
  env: Record<string, string>,
  processes: number,
  port: number,
): Promise<MachineProcess> {
  const child = spawn(process.execPath, ["--max-semi-space-size=16", main, "serve"], {
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      MALLOC_ARENA_MAX: "2",
      PATH: process.env.PATH,
      NODE_ENV: "production",
      ...env,
      BELFRY_PROCESSES: String(processes),
      BELFRY_PORT: String(port),
    },
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const served: number[] = [];
  const serving = Promise.withResolvers<void>();
  void exited.then(() => serving.reject(new Error("the server ended before it served")));
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("Belfry serves")) return serving.resolve();
    const { msg, time, process: by } = line.startsWith("{") ? JSON.parse(line) : {};
    if (msg === "serving" && by !== "owner") served.push(time);
  });
  await serving.promise;
  const all = processesOf(child.pid as number);
  return {
    port,
    startSpreadMs: () => Math.max(...served) - Math.min(...served),
    cpuUs: () => all.reduce((sum, pid) => sum + Number(statOf(pid)[11]) + Number(statOf(pid)[12]), 0) * 10_000,
    memory: () => all.map((pid) => (Number(statOf(pid)[21]) * pageBytes) / 1e6),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
