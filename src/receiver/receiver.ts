import type { Config } from "../config.ts";
import type { Db } from "../db/connect.ts";
import { type ModelItem, type OnChanged, putModels } from "../entities/put.ts";
import { type EventItem, ingestEvents } from "../events/ingest.ts";
import type { TimeBounds } from "./item.ts";

/** What the receiver's operations work with. */
export interface Receiver {
  nowMs(): number;
  /** Bounds on the timestamps of models and metric points. */
  dataBounds: TimeBounds;
  eventBounds: TimeBounds;
  putModels(tenantId: string, models: readonly ModelItem[]): Promise<void>;
  ingestEvents(tenantId: string, events: readonly EventItem[]): Promise<void>;
}

type Bounds = Pick<Config, "modelAgeSecMax" | "aheadSecMax" | "eventRetentionSec">;

/** The receiver on a database. `nowMs` is the database's time, `onModels` hears of the entities that models change. */
export function receiver(db: Db, config: Bounds, nowMs: () => number, onModels?: OnChanged): Receiver {
  return {
    nowMs,
    dataBounds: { ageSecMax: config.modelAgeSecMax, aheadSecMax: config.aheadSecMax },
    eventBounds: { ageSecMax: config.eventRetentionSec, aheadSecMax: config.aheadSecMax },
    putModels: (tenantId, models) => putModels(db, tenantId, models, nowMs(), onModels),
    ingestEvents: (tenantId, events) => ingestEvents(db, tenantId, events, nowMs()),
  };
}
