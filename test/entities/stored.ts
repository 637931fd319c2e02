import type { Db } from "../../src/db/connect.ts";
import { unbounded } from "../../src/entities/bounds.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import * as put from "../../src/entities/put.ts";
import * as touch from "../../src/entities/touch.ts";
import * as ingest from "../../src/events/ingest.ts";

/** Stores models as a server does that knows of no entity and bounds none, unless `known` and `bounds` say so. */
export const putModels = (
  db: Db,
  tenantId: string,
  models: readonly put.ModelItem[],
  nowMs: number,
  onChanged?: put.OnChanged,
  known = entityCache(),
  bounds = unbounded,
) => put.putModels(db, tenantId, models, nowMs, onChanged, known, bounds);

/** Sees entities in data as such a server does. */
export const touchEntities = (
  db: Db,
  tenantId: string,
  sightings: Parameters<typeof touch.touchEntities>[2],
  nowMs: number,
  known = entityCache(),
  bounds = unbounded,
) => touch.touchEntities(db, tenantId, sightings, nowMs, known, bounds);

type Storing = Parameters<typeof ingest.ingestEvents>[3];

/** Stores events as such a server does. */
export const ingestEvents = (
  db: Db,
  tenantId: string,
  items: readonly ingest.EventItem[],
  storing: Pick<Storing, "nowMs" | "store"> & Partial<Storing>,
) =>
  ingest.ingestEvents(db, tenantId, items, {
    known: entityCache(),
    bounds: { ...unbounded, eventsMax: Infinity },
    ...storing,
  });
