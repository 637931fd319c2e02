// Loaded into a server process (`node --import`): writes to the file LOOP_FILE each time that the event loop was held.
import { appendFileSync } from "node:fs";

const file = process.env.LOOP_FILE ?? "";
const everyMs = 10;
const toldMs = 50;

let last = performance.now();
let lastCpu = process.threadCpuUsage();

/** Held is what the main thread worked itself: on a busy machine it also waits for a processor. */
setInterval(() => {
  const now = performance.now();
  const cpu = process.threadCpuUsage();
  const lateMs = now - last - everyMs;
  const workedMs = (cpu.user - lastCpu.user + cpu.system - lastCpu.system) / 1000;
  const heldMs = Math.round(Math.min(lateMs, workedMs));
  if (heldMs > toldMs) appendFileSync(file, `${JSON.stringify({ atMs: Date.now(), lateMs, heldMs })}\n`);
  last = performance.now();
  lastCpu = process.threadCpuUsage();
}, everyMs).unref();
