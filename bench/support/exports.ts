import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** Exports all data again and again, as an operator does from a command line. */
export function exporting(env: Record<string, string>): () => void {
  let going = true;
  let child: ChildProcess | undefined;
  void (async () => {
    for (let n = 0; going; n += 1) {
      const file = join(env.BELFRY_DATA_DIR ?? "", `copy ${n}`);
      const command = [new URL("../../src/main.ts", import.meta.url).pathname, "export", file];
      child = spawn(process.execPath, command, {
        env: { ...process.env, ...env },
        stdio: ["ignore", "ignore", "inherit"],
      });
      await once(child, "exit");
    }
  })();
  return () => {
    going = false;
    child?.kill();
  };
}
