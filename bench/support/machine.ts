import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";

/**
 * Which process runs where: a server has a processor of its own, the generator another, the database what is left. An
 * attacker, which would have a machine of its own, takes what the generator leaves of its processor. What is "shared" runs wherever the system puts it.
 */
export type Place = "server" | "generator" | "database" | "attacker" | "shared";

const processors = availableParallelism();
const pins =
  process.platform === "linux" && processors > 1 && spawnSync("taskset", ["-c", "0", "true"]).status === 0
    ? { server: "0", generator: "1", attacker: "1", database: processors > 2 ? `2-${processors - 1}` : "1" }
    : undefined;

/** A command line that runs at its place, where the machine can do that. */
export function placed(place: Place, command: readonly string[]): [string, string[]] {
  const polite = place === "attacker" ? ["nice", "-n", "19", ...command] : command;
  const pinned = pins !== undefined && place !== "shared";
  const [program = "", ...args] = pinned ? ["taskset", "-c", pins[place], ...polite] : command;
  return [program, args];
}

/** Moves a process that runs already, and what it starts from now on. */
export function move(pid: number | undefined, place: Place): void {
  if (pins !== undefined && place !== "shared" && pid !== undefined)
    spawnSync("taskset", ["-cp", pins[place], String(pid)]);
}

/** Processor time that the processes of a PostgreSQL have used so far, ms, ended ones in steps of 10; 0 where there is no /proc. */
export function postgresCpuMs(pid: number | undefined): number {
  if (process.platform !== "linux") return 0;
  let ms = 0;
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const [, parent, ...fields] = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      const own = name === String(pid);
      if (parent !== String(pid) && !own) continue;
      // Each has one thread, whose time the scheduler counts in nanoseconds.
      ms += Number(readFileSync(`/proc/${name}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;
      if (own) ms += (Number(fields[11]) + Number(fields[12])) * 10; // of those whose end it has seen
    } catch {
      // It has ended.
    }
  }
  return ms;
}

/** Processor time that a process has used so far, ms, in steps of 10; 0 where there is no /proc. */
export function processCpuMs(pid: number | undefined): number {
  if (process.platform !== "linux") return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** What a reader must know of the machine, a line each. */
export function machineFacts(postgresVersion: string, shared = false): string[] {
  const places =
    pins === undefined || shared
      ? "processes not pinned"
      : `servers on processor ${pins.server}, generator on ${pins.generator}, PostgreSQL on ${pins.database}`;
  return [
    `${processors} × ${cpus()[0]?.model ?? "unknown processor"}; ${places}; load average before: ${loadavg()[0]?.toFixed(1)}`,
    `Node ${process.version}, PostgreSQL ${postgresVersion}`,
  ];
}
