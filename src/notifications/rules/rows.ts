import type { RowValues, ValueField } from "../../clause/field.ts";
import { labelOfField } from "../../clause/label-matcher.ts";
import type { Db } from "../../db/connect.ts";
import { entityResolver } from "../../entities/fields.ts";
import type { EntityRow } from "../../entities/messages.ts";
import { readEntities } from "../../entities/read.ts";
import { toRow } from "../../events/columns.ts";
import {
  type EventIdentity,
  type EventRow,
  eventField,
  type IdentityColumns,
  toColumns,
  toTexts,
} from "../../events/fields.ts";
import { type LabelView, labelOf, labelView } from "../../events/labels.ts";
import type { Occurrence } from "../../events/lifecycle.ts";
import { countOccurrences } from "../../events/occurrences.ts";
import { eventResolver } from "../../events/resolver.ts";

/** What fields of an entity are called in triggers of events. */
const ofEntity = "entity.";

/** An occurrence as triggers see it. What its entity says is there once it is read. */
export interface MatchRow extends Omit<EventRow, "alert_labels">, IdentityColumns {
  entity: EntityRow | undefined;
  /** Its labels, once they were asked for; its entity was read before. */
  labels?: LabelView;
}

/** The fields that triggers may name, by which their clauses become predicates. */
export interface TriggerFields {
  readonly events: RowValues<MatchRow>;
  readonly entities: RowValues<EntityRow>;
}

/** The fields of a tenant's events and entities. */
export function triggerFields(tenantId: string, tenantName: string): TriggerFields {
  const events = eventResolver(tenantId);
  const entities = entityResolver(tenantId, { tenantName });
  function field(key: string): ValueField<MatchRow> | undefined {
    const label = labelOfField(key);
    if (label !== undefined) return { get: (row) => labelOf(rowLabels(row), label) || undefined };
    if (!key.startsWith(ofEntity)) return events.field(key);
    const found = entities.field(key.slice(ofEntity.length));
    if (found === undefined) return undefined;
    const { get, numbers } = found;
    return { get: ({ entity }) => entity && get(entity), ...(numbers && { numbers }) };
  }
  return { events: { field, idsOf: events.idsOf }, entities };
}

/** The labels of an occurrence, whose entity was read. */
export function rowLabels(row: MatchRow): LabelView {
  row.labels ??= labelView({
    kind: "occurrence",
    event: toTexts(row),
    occurrence: { type: row.type, severity: row.severity, metadata: row.metadata },
    dimensions: row.entity_dimensions,
  });
  return row.labels;
}

/** What must be read of the database before a field has its value. */
export function readsOf(key: string): "entity" | "count" | undefined {
  if (key.startsWith(ofEntity) || labelOfField(key) !== undefined) return "entity";
  const field = eventField(key);
  if (field.kind === "metadata") return undefined;
  if (field.kind !== "column" || field.name === "entityName") return "entity";
  return field.name === "count" ? "count" : undefined;
}

/** An occurrence as triggers see it, before anything of its entity is read. */
export function matchRow(event: EventIdentity, occurrence: Occurrence): MatchRow {
  return {
    ...toRow(event.id, occurrence),
    ...toColumns(event),
    entity_name: "",
    entity_dimensions: {},
    entity_metadata: {},
    count: 0n,
    entity: undefined,
  };
}

const keyOf = (id: Buffer) => id.toString("latin1");

/** Reads the entities of rows that have none yet, in one statement; rows of one entity share it. */
export async function readEntitiesOf(db: Db, tenantId: string, rows: readonly MatchRow[]): Promise<void> {
  const missing = rows.filter(({ entity }) => entity === undefined);
  const ids = new Map(missing.map(({ entity_id }) => [keyOf(entity_id), entity_id]));
  if (ids.size === 0) return;
  const found = await readEntities(db, tenantId, [...ids.values()]);
  const byId = new Map(found.map((entity) => [keyOf(entity.id), entity]));
  for (const row of missing) {
    const entity = byId.get(keyOf(row.entity_id));
    if (entity === undefined) continue;
    row.entity = entity;
    row.entity_name = entity.name;
    row.entity_dimensions = entity.dimensions;
    row.entity_metadata = entity.metadata;
  }
}

/** Reads how many occurrences the events of these rows have. */
export async function readCounts(db: Db, tenantId: string, rows: readonly MatchRow[]): Promise<void> {
  if (rows.length === 0) return;
  const ids = new Map(rows.map(({ event_id }) => [keyOf(event_id), event_id]));
  const counts = await countOccurrences(db, tenantId, [...ids.values()]);
  for (const row of rows) row.count = counts.get(keyOf(row.event_id)) ?? 0n;
}
