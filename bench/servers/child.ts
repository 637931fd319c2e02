import { monitorEventLoopDelay } from "node:perf_hooks";

const resolutionMs = 1;

/** Tells the bench that this server listens, answers what it asks, and ends with it. */
export function serving(port: number): void {
  let loop: ReturnType<typeof monitorEventLoopDelay> | undefined;
  process.on("message", (question) => {
    if (question === "loop") {
      if (loop === undefined) {
        loop = monitorEventLoopDelay({ resolution: resolutionMs });
        loop.enable();
      }
      const maxMs = Math.max(0, loop.max / 1e6 - resolutionMs);
      loop.reset();
      process.send?.({ maxMs });
    }
    if (question !== "cpu") return;
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage.rss() });
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.({ port });
}

/** What the bench gave to this server. */
export function given<T>(): T {
  return JSON.parse(process.argv[2] ?? "{}");
}
