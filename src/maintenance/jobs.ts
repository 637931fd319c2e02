import type { JobKind } from "../jobs/worker.ts";
import type { Log } from "../log.ts";
import type { WindowHooks } from "./hooks.ts";
import { membersJob } from "./members.ts";
import { runsJob } from "./run.ts";

/** The background work of windows. `wake` informs the worker that something is due at once. */
export function windowKinds(hooks: WindowHooks, wake: () => void, log?: Pick<Log, "warn">): JobKind[] {
  return [runsJob(hooks, wake, log), membersJob(hooks)];
}
