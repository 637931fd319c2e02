import { rmSync } from "node:fs";
import { dataDirectoryOf } from "../../src/embedded/data-directory.ts";
import { alive, readPidFile, serves } from "../../src/embedded/postmaster.ts";

/** PostgreSQL ends at once, without a checkpoint; beyond this time it is not waited for. */
const endMsMax = 5000;

/** Ends the PostgreSQL of a directory, should it still run, and removes the directory. Without a promise: also while a process exits. */
export function removeDatabase(dir: string): void {
  const { data } = dataDirectoryOf(dir);
  const pid = readPidFile(data)?.pid;
  if (pid !== undefined && serves(pid, data)) {
    process.kill(pid, "SIGQUIT");
    const never = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < endMsMax / 20 && alive(pid); i += 1) Atomics.wait(never, 0, 0, 20);
  }
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}
