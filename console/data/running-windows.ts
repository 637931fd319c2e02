import { polled } from "./polled.ts";

/** The number of maintenance windows that run. The code that asks is loaded behind the first screen. */
export const {
  value: runningWindows,
  ask: askRunningWindows,
  start: startRunningWindows,
} = polled(
  async () => (await import("./count-running.ts")).countRunning(),
  () => true,
);
