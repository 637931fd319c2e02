// Loaded into a server process before anything of it (`node --import`). FAULTS says what is to go wrong.
import cluster from "node:cluster";
import { flushCompileCache } from "node:module";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type LoopTurns, loopTurns } from "../support/loop-turns.ts";
import { random } from "./random.ts";

// One that is killed writes nothing at its end.
setTimeout(flushCompileCache, 3000).unref();

/** What a process is started with. */
export interface Faults {
  seed?: number;
  /** By failpoint: what happens there, from the `at`-th time on, with this probability. */
  points?: Record<string, { act: "die" | "fail" | "hold"; at?: number; probability?: number; holdMs?: number }>;
  /** How far this process's own clock is from the machine's, ms. */
  clockShiftMs?: number;
}

let { seed = 1, points = {}, clockShiftMs = 0 }: Faults = JSON.parse(process.env.FAULTS ?? "{}");
let { chance } = random(seed, 99);
const counts = new Map<string, number>();
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** What PostgreSQL asks to run a transaction again with. */
const serialization = () => Object.assign(new Error("a fault test asks for another try"), { code: "40001" });

function reached(name: string) {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  if (count === 1) process.send?.({ reached: name });
  const point = points[name] ?? points["*"];
  if (point === undefined || count < (point.at ?? 1) || !chance(point.probability ?? 1)) return;
  if (point.act === "die") process.kill(process.pid, "SIGKILL");
  if (point.act === "hold") Atomics.wait(sleeper, 0, 0, point.holdMs ?? 50);
  // After a commit there is nothing left to try again.
  if (point.act === "fail" && !name.endsWith("committed")) throw serialization();
}

Object.assign(globalThis, { [Symbol.for("belfry.failpoint")]: reached });

const RealDate = Date;

class ShiftedDate extends RealDate {
  constructor(...args: [number?]) {
    if (args.length === 0) super(RealDate.now() + clockShiftMs);
    else super(...(args as [number]));
  }
  static override now() {
    return RealDate.now() + clockShiftMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Returns the bytes held after a collection: the heap, and buffers outside of it. */
async function heldBytes(): Promise<number> {
  // What the first collection finalizes goes with the second.
  for (let i = 0; i < 2; i += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Measured from the first question on. */
let turns: LoopTurns | undefined;

/**
 * From now on it is these faults, here and in the processes that serve for this one; counting begins again. Or it is asked for the longest
 * turn of its event loop, or for the memory that it holds.
 */
process.on("message", (faults: Faults | "longestTurn" | "heldBytes" | { order: string }) => {
  if (faults === "heldBytes") {
    void heldBytes().then((bytes) => process.send?.({ heldBytes: bytes }));
    return;
  }
  if (faults === "longestTurn") {
    turns ??= loopTurns();
    process.send?.({ longestTurn: turns.longest() });
    return;
  }
  // To a process that serves, its owner says more.
  if ("order" in faults) return;
  for (const worker of Object.values(cluster.workers ?? {})) worker?.send(faults);
  ({ seed = 1, points = {}, clockShiftMs = 0 } = faults);
  ({ chance } = random(seed, 99));
  counts.clear();
  process.send?.({ clockMs: Date.now() });
});
// The server ends when it has nothing more to do; the process that started it may have ended, and no other one would stop it.
process.channel?.unref();
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
