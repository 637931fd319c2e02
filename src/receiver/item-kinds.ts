import { type Event, EventSchema, type Model, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { Config } from "../config/settings.ts";
import type { EntityBounds } from "../entities/bounds.ts";
import { coreFacts } from "../entities/core-properties.ts";
import type { EntityCache } from "../entities/entity-cache.ts";
import { DELETED_KEY, type ModelItem, type OnChanged, putModels } from "../entities/put.ts";
import { isOverfull, termsBytes } from "../entities/terms.ts";
import type { StoreChanges } from "../events/changes.ts";
import { eventTexts } from "../events/fields.ts";
import { type DataBounds, type EventItem, ingestEvents } from "../events/ingest.ts";
import type { Broken } from "../rpc/constraint-rules.ts";
import { plausibleMs } from "../rpc/times.ts";
import type { PutKind } from "./put.ts";

type Bounds = Pick<Config, "modelAgeSecMax" | "aheadSecMax" | "eventRetentionSec">;

/** Events: `store` stores what happens to occurrences, `known` is what this process knows of entities. */
export function eventKind(
  { eventRetentionSec, aheadSecMax }: Bounds,
  nowMs: () => number,
  store: StoreChanges,
  known: EntityCache,
  bounds: DataBounds,
): PutKind<typeof EventSchema, EventItem> {
  return {
    list: "events",
    rules: { schema: EventSchema, bounds: { ageSecMax: eventRetentionSec, aheadSecMax }, more: brokenExpiry },
    toItem: (event) => ({
      ...eventTexts(event),
      dimensions: event.dimensions,
      timeMs: event.timestamp as bigint,
      severity: event.severity,
      status: event.status,
      acknowledged: event.acknowledged,
      type: event.type,
      summary: event.summary,
      body: event.body,
      metadata: event.metadataFields ?? {},
      ...(event.expiresAt !== undefined && { expiresAtMs: event.expiresAt }),
    }),
    lane: {
      name: "events",
      store: (tx, tenantId, items) => ingestEvents(tx, tenantId, items, { nowMs: nowMs(), store, known, bounds }),
    },
  };
}

function brokenExpiry({ expiresAt }: Event, path: string): Broken[] {
  if (expiresAt === undefined || expiresAt >= plausibleMs) return [];
  return [{ path: `${path}.expiresAt`, rule: `must be in ms since the epoch; ${expiresAt} looks like seconds` }];
}

/** Models: `onModels` hears of the entities that they change. */
export function modelKind(
  { modelAgeSecMax, aheadSecMax }: Bounds,
  nowMs: () => number,
  onModels: OnChanged,
  known: EntityCache,
  bounds: EntityBounds,
): PutKind<typeof ModelSchema, ModelItem> {
  return {
    list: "models",
    rules: { schema: ModelSchema, bounds: { ageSecMax: modelAgeSecMax, aheadSecMax }, more: brokenMetadata },
    toItem: (model) => ({
      timestampMs: model.timestamp as bigint,
      dimensions: model.dimensions,
      metadata: model.metadataFields ?? {},
    }),
    lane: {
      name: "models",
      store: (tx, tenantId, items) => putModels(tx, tenantId, items, nowMs(), onModels, known, bounds),
    },
  };
}

const NAME_CHARACTERS_MAX = 255;

function brokenName(model: Model, modelPath: string): Broken[] {
  const name = model.metadataFields?.name;
  const path = `${modelPath}.metadataFields.name`;
  if (name === undefined || name === null || name === "") return [];
  if (typeof name !== "string") return [{ path, rule: "must be a string" }];
  if (name.length > NAME_CHARACTERS_MAX && [...name].length > NAME_CHARACTERS_MAX) {
    return [{ path, rule: `must be at most ${NAME_CHARACTERS_MAX} characters` }];
  }
  return /\p{Cc}/u.test(name) ? [{ path, rule: "must not contain control characters" }] : [];
}

/** The production state is any whole number, the priority one from 0 to 5. */
function brokenNumbers(model: Model, modelPath: string): Broken[] {
  const { productionState = null, priority = null } = model.metadataFields ?? {};
  const broken: Broken[] = [];
  if (productionState !== null && !Number.isSafeInteger(productionState)) {
    broken.push({ path: `${modelPath}.metadataFields.productionState`, rule: "must be a whole number" });
  }
  if (priority !== null && !(Number.isSafeInteger(priority) && Number(priority) >= 0 && Number(priority) <= 5)) {
    broken.push({ path: `${modelPath}.metadataFields.priority`, rule: "must be a whole number from 0 to 5" });
  }
  return broken;
}

const isText = (value: unknown) => typeof value === "string";

/** What of another type would be passed over in silence: a deletion that deletes nothing, a parent that is none. */
function brokenTypes(model: Model, modelPath: string): Broken[] {
  const { parent = null, [DELETED_KEY]: deleted = null } = model.metadataFields ?? {};
  const broken: Broken[] = [];
  if (deleted !== null && typeof deleted !== "boolean") {
    broken.push({ path: `${modelPath}.metadataFields.${DELETED_KEY}`, rule: "must be true or false" });
  }
  if (parent !== null && !isText(parent) && !(Array.isArray(parent) && parent.every(isText))) {
    broken.push({ path: `${modelPath}.metadataFields.parent`, rule: "must be a string or a list of strings" });
  }
  return broken;
}

/** What an index cannot hold of the values by which an entity is found. */
function brokenTerms({ dimensions, metadataFields = {} }: Model, modelPath: string): Broken[] {
  const core = coreFacts("", dimensions, metadataFields);
  if (!isOverfull("m", core)) return [];
  const [[key] = [""]] = [...(termsBytes("m", core) ?? [])].sort(([, a], [, b]) => b - a);
  const path = `${modelPath}.metadataFields[${JSON.stringify(key)}]`;
  return [{ path, rule: "holds more values to search for than an index takes: send fewer of them, or a shorter key" }];
}

const brokenMetadata = (model: Model, path: string) => [
  ...brokenName(model, path),
  ...brokenNumbers(model, path),
  ...brokenTypes(model, path),
  ...brokenTerms(model, path),
];
