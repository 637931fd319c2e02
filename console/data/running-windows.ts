import { polled } from "./polled.ts";

/** How many maintenance windows run. The first screen does not wait for what it takes to ask. */
export const {
  value: runningWindows,
  ask: askRunningWindows,
  start: startRunningWindows,
} = polled(
  async () => (await import("./count-running.ts")).countRunning(),
  () => true,
);
