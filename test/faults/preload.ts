// Loaded into a server process before anything of it (`node --import`). FAULTS says what is to go wrong.
import { flushCompileCache } from "node:module";
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

let heldMs = 0;

/** From the first question on: the processor time of the longest turn of the event loop, ms, whatever else the machine does. */
function measureTurns() {
  let before = process.threadCpuUsage();
  setInterval(() => {
    const now = process.threadCpuUsage();
    heldMs = Math.max(heldMs, (now.user + now.system - before.user - before.system) / 1000);
    before = now;
  }, 1).unref();
}
let measuring = false;

/** From now on it is these faults; counting begins again. */
process.on("message", (faults: Faults | { held: true }) => {
  if ("held" in faults) {
    if (!measuring) measureTurns();
    measuring = true;
    process.send?.({ heldMs });
    heldMs = 0;
    return;
  }
  ({ seed = 1, points = {}, clockShiftMs = 0 } = faults);
  ({ chance } = random(seed, 99));
  counts.clear();
  process.send?.({ clockMs: Date.now() });
});
// The server ends when it has nothing more to do; the process that started it may have ended, and no other one would stop it.
process.channel?.unref();
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
