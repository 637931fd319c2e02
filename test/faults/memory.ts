import { readFileSync } from "node:fs";
import type { ServerProcess } from "./server-process.ts";

const lookMs = 5000;
/** A life that is shorter is warming up: 10 minutes. */
const looksMin = 120;
const growthMax = 1.25;

/** What a process holds in memory, MB; undefined when it is gone. */
function memoryMb(pid: number): number | undefined {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return undefined;
  }
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const quarter = (looks: readonly number[], i: number) =>
  median(looks.slice((looks.length * (i - 1)) >> 2, (looks.length * i) >> 2));
const quarters = (looks: readonly number[]) => [1, 2, 3, 4].map((i) => quarter(looks, i).toFixed(0)).join(", ");

/** Looks at the memory of servers every 5 s, for each life of each process. */
export function memoryOf(servers: readonly ServerProcess[]) {
  const lives = new Map<number, number[]>();
  const timer = setInterval(() => {
    for (const pid of servers.flatMap(({ pids }) => pids)) {
      const mb = memoryMb(pid);
      if (mb === undefined) continue;
      const looks = lives.get(pid) ?? [];
      lives.set(pid, looks);
      looks.push(mb);
    }
  }, lookMs);
  const long = () => [...lives.values()].filter((looks) => looks.length >= looksMin);
  return {
    stop: () => clearInterval(timer),
    now: () =>
      servers.map(({ pids }) => pids.map((pid) => (memoryMb(pid) ?? 0).toFixed(0)).join(" + ") || "0").join(" and "),
    /** Medians of the four quarters of each life that was long, or of the longest one. */
    longest() {
      const longestFirst = [...lives.values()].toSorted((a, b) => b.length - a.length);
      const told = longestFirst.filter((looks, i) => i === 0 || looks.length >= looksMin);
      const each = told.map((looks) => `${Math.round((looks.length * lookMs) / 60_000)} min: ${quarters(looks)} MB`);
      return `processes that lived longest, by quarters of their lives: ${each.join("; ")}`;
    },
    /** Long lives whose last quarter lies clearly above the second one. */
    grown: () =>
      long()
        .filter((looks) => quarter(looks, 4) > quarter(looks, 2) * growthMax)
        .map((looks) => `memory grows: ${quarters(looks)} MB by quarters of a life`),
  };
}
