import { readdirSync, readFileSync } from "node:fs";

/** State and parent of a process; undefined when there is none. */
function statOf(pid: number | string): { state: string; parent: number } | undefined {
  try {
    // After the program's name, which may hold anything.
    const [state = "", parent] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop()?.split(" ") ?? [];
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** Whether a process has not ended, be it noticed or not. */
export function running(pid: number): boolean {
  return !["Z", "X", undefined].includes(statOf(pid)?.state);
}

/** The serving processes of a server; none when it serves in its own. */
export function servingOf(owner: number): number[] {
  const own = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && statOf(name)?.parent === owner);
  return own.map(Number).filter((pid) => running(pid) && argsOf(pid).includes("serve"));
}

function argsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}
