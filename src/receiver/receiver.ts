import type { Config } from "../config.ts";
import type { Db } from "../db/connect.ts";
import { type ModelItem, type OnChanged, putModels } from "../entities/put.ts";
import type { StoreChanges } from "../events/changes.ts";
import { type EventItem, ingestEvents } from "../events/ingest.ts";
import type { Admission } from "./admission.ts";
import type { TimeBounds } from "./item.ts";

/** What the receiver's operations work with. */
export interface Receiver {
  nowMs(): number;
  /** Bounds on the timestamps of models and metric points. */
  dataBounds: TimeBounds;
  eventBounds: TimeBounds;
  putModels(tenantId: string, models: readonly ModelItem[]): Promise<void>;
  ingestEvents(tenantId: string, events: readonly EventItem[]): Promise<void>;
  admission: Admission;
}

type Bounds = Pick<Config, "modelAgeSecMax" | "aheadSecMax" | "eventRetentionSec">;

/**
 * The receiver on a database. `nowMs` is the database's time, `onModels` hears of the entities that models change,
 * `storeChanges` stores what happens to occurrences.
 */
export function receiver(
  db: Db,
  config: Bounds,
  nowMs: () => number,
  admission: Admission,
  { onModels, storeChanges }: { onModels?: OnChanged; storeChanges: StoreChanges },
): Receiver {
  return {
    admission,
    nowMs,
    dataBounds: { ageSecMax: config.modelAgeSecMax, aheadSecMax: config.aheadSecMax },
    eventBounds: { ageSecMax: config.eventRetentionSec, aheadSecMax: config.aheadSecMax },
    putModels: (tenantId, models) => admission.turn(() => putModels(db, tenantId, models, nowMs(), onModels)),
    ingestEvents: (tenantId, events) =>
      admission.turn(() => ingestEvents(db, tenantId, events, { nowMs: nowMs(), store: storeChanges })),
  };
}
