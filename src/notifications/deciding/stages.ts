import { noSilences } from "../silences/silences-in-force.ts";
import type { Batch, Stage } from "./batch.ts";
import { decideAll } from "./decide-all.ts";
import { enqueueNotices } from "./enqueue.ts";
import { group } from "./group.ts";
import { match } from "./match.ts";
import { mute } from "./mute.ts";
import { relabel } from "./relabel.ts";
import { wakeDispatcher } from "./wake-dispatcher.ts";

/**
 * The way of an alert, in one transaction under the locks of its subjects. Changes of occurrences enter at `match`; points, data that
 * stay away and looks at what stands at `decide`; what windows say at `enqueue`.
 */
const stages = { match, decide: decideAll, mute, group, relabel, enqueue: enqueueNotices, wakeDispatcher };

/** Passes what enters at a stage through this one and all that follow. */
export async function passFrom(
  first: keyof typeof stages,
  entering: Pick<Batch, "tx" | "tenantId" | "nowMs" | "wake"> & Partial<Batch>,
): Promise<Batch> {
  const nothing = {
    changes: undefined,
    taken: 0,
    noted: new Map(),
    sights: [],
    decided: [],
    ongoing: [],
    notices: [],
    over: [],
    jobs: [],
  };
  let batch: Batch = { ...nothing, dueMs: Infinity, silences: noSilences, ...entering };
  const all: [string, Stage][] = Object.entries(stages);
  for (const [, stage] of all.slice(all.findIndex(([name]) => name === first))) {
    batch = { ...batch, ...(await stage(batch)) };
  }
  return batch;
}
