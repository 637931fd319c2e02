import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import {
  type Annotation,
  AnnotationSchema,
  type Event,
  EventSchema,
  type Occurrence,
  OccurrenceSchema,
  type Severity,
  type Status,
} from "#gen/belfry/events/v1/event_pb.ts";
import { coreProperties } from "../entities/core-properties.ts";
import { displayName } from "../entities/display-name.ts";
import { idText } from "../entities/identity.ts";
import { toOccurrence } from "./columns.ts";
import { bareKeyOf, type ColumnField, type EventField, eventField, eventMembers } from "./fields.ts";
import { closerOf } from "./lifecycle.ts";
import { occurrenceIdText } from "./occurrence-id.ts";
import type { OccurrenceRow } from "./rows.ts";

/** Which fields an answer shows. */
export interface Selection {
  column(name: ColumnField): boolean;
  /** Of a map's members, those that were asked for. */
  dimensions<T>(map: Record<string, T>): Record<string, T>;
  metadata<T>(map: Record<string, T>, dimensions: Record<string, unknown>): Record<string, T>;
  coreProperties<T>(map: () => Record<string, T>): Record<string, T>;
}

const everything: Selection = {
  column: () => true,
  dimensions: (map) => map,
  metadata: (map) => map,
  coreProperties: (map) => map(),
};

/** The fields of these names; all of them when there are none. */
export function selection(names: readonly string[]): Selection {
  if (names.length === 0) return everything;
  const fields = names
    .map(eventField)
    .map((field) => (field.kind === "label" ? { kind: "bare" as const, key: bareKeyOf(field.key) } : field));
  const columns = new Set(fields.filter((field) => field.kind === "column").map(({ name }) => name));
  const keysOf = (...kinds: EventField["kind"][]) =>
    fields.flatMap((field) => (field.kind !== "column" && kinds.includes(field.kind) ? [field.key] : []));
  const dimensionKeys = keysOf("dimension", "bare");
  const metadataKeys = keysOf("metadata");
  const bareKeys = keysOf("bare");
  const coreKeys = keysOf("coreProperty");
  return {
    column: (name) => columns.has(name),
    dimensions: (map) => pick(map, dimensionKeys),
    metadata: (map, dimensions) =>
      pick(map, [...metadataKeys, ...bareKeys.filter((key) => !Object.hasOwn(dimensions, key))]),
    coreProperties: (map) => (coreKeys.length === 0 ? {} : pick(map(), coreKeys)),
  };
}

function pick<T>(map: Record<string, T>, keys: readonly string[]): Record<string, T> {
  // Not by assignment: a dimension may be called __proto__.
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(map, key)).map((key) => [key, map[key] as T]));
}

/** An occurrence as the API shows it. */
export function toOccurrenceMessage(row: OccurrenceRow, tenantId: string, shown: Selection): Occurrence {
  const show = <T>(name: ColumnField, value: T): T | undefined => (shown.column(name) ? value : undefined);
  return create(OccurrenceSchema, {
    id: occurrenceIdText(row.event_id, row.number),
    eventId: idText(row.event_id),
    severity: show("severity", row.severity as Severity),
    status: show("status", row.status as Status),
    summary: show("summary", row.summary),
    startTime: show("startTime", row.start_ms),
    lastSeen: show("lastSeen", row.last_seen_ms),
    endTime: show("endTime", row.end_ms ?? undefined),
    closedBy: show("endTime", row.end_ms === null ? undefined : closerOf(toOccurrence(row))),
    expiresAt: show("expiresAt", row.expires_ms ?? undefined),
    instanceCount: show("instanceCount", row.instance_count),
    type: show("type", row.type),
    body: show("body", row.body),
    acknowledged: show("acknowledged", row.acknowledged),
    dimensions: shown.dimensions(row.entity_dimensions),
    metadataFields: shown.metadata(row.metadata as Record<string, JsonValue>, row.entity_dimensions) as JsonObject,
    coreProperties: shown.coreProperties(() =>
      coreProperties({
        id: idText(row.entity_id),
        tenantId,
        name: row.entity_name,
        dimensions: row.entity_dimensions,
        metadata: row.entity_metadata,
      }),
    ),
  });
}

/** An event as the API shows it, with these of its occurrences. `about` is any row of the event. */
export function toEvent(
  about: OccurrenceRow,
  rows: readonly OccurrenceRow[],
  count: bigint,
  tenantId: string,
  shown: Selection,
  matchedCount?: bigint,
): Event {
  return create(EventSchema, {
    id: idText(about.event_id),
    ...eventMembers({ ...about, count }, shown.column),
    entityDisplayName: shown.column("entityName") ? displayName(about.entity_name, about.entity_dimensions) : undefined,
    count: shown.column("count") ? count : undefined,
    occurrences: rows.map((row) => toOccurrenceMessage(row, tenantId, shown)),
    matchedCount,
  });
}

/** A row of annotations. */
export interface AnnotationRow {
  number: number;
  id: string;
  text: string;
  created_by: string;
  created_ms: bigint;
  updated_ms: bigint;
}

/** A note as the API shows it. */
export function toAnnotation(row: AnnotationRow): Annotation {
  return create(AnnotationSchema, {
    id: row.id,
    annotation: row.text,
    createdBy: row.created_by,
    createTime: row.created_ms,
    updateTime: row.updated_ms,
  });
}
