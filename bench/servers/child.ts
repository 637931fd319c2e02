import { type LoopTurns, loopTurns } from "../../test/support/loop-turns.ts";

/** Informs the bench that this server listens, answers what it asks, and ends with it. */
export function serving(port: number): void {
  let turns: LoopTurns | undefined;
  process.on("message", (question) => {
    if (question === "loop") {
      turns ??= loopTurns();
      process.send?.({ maxMs: turns.longest().ms });
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
