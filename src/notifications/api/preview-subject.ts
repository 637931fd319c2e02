import { create } from "@bufbuild/protobuf";
import { GetEventRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { PreviewRuleRequest } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import type { Event } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { Db } from "../../db/connect.ts";
import { idText, nameFromDimensions } from "../../entities/identity.ts";
import type { EntityRow } from "../../entities/messages.ts";
import { notFound } from "../../errors.ts";
import { eventTexts, identityOf } from "../../events/fields.ts";
import { getEvent } from "../../events/get.ts";
import { applyInstance, CLOSED } from "../../events/lifecycle.ts";
import { occurrenceIdText } from "../../events/occurrence-id.ts";
import { type MatchRow, matchRow } from "../rules/rows.ts";
import type { StoredTrigger } from "../rules/stored-rules.ts";
import { type Notification, notifiedEvent } from "../subject/notification.ts";
import { readOccurrence } from "../subject/read-subjects.ts";
import { readSeen } from "./explanation-steps.ts";

/** The event of a preview as triggers see it. @throws code 5 when there is none of the id */
export async function previewRow(
  db: Db,
  tenantId: string,
  subject: PreviewRuleRequest["subject"],
  triggers: readonly StoredTrigger[],
): Promise<MatchRow> {
  if (subject.case !== "event") {
    // The latest occurrence comes first.
    const id = subject.value ?? "";
    const { result } = await getEvent(db, tenantId, create(GetEventRequestSchema, { id }));
    const row = await previewedOccurrence(db, tenantId, result?.occurrences[0]?.id ?? "", triggers);
    if (row === undefined) throw notFound("event", id);
    return row;
  }
  const row = sentEvent(tenantId, subject.value);
  await readSeen(db, tenantId, row, triggers);
  row.count += 1n;
  return row.entity === undefined ? withNewEntity(row, subject.value) : row;
}

/** Reads an occurrence by its id as triggers see it; undefined: there is none. */
export async function previewedOccurrence(
  db: Db,
  tenantId: string,
  id: string,
  triggers: readonly StoredTrigger[],
): Promise<MatchRow | undefined> {
  const found = await readOccurrence(db, tenantId, id);
  if (found === undefined) return undefined;
  const row = matchRow(found.event, found.occurrence);
  await readSeen(db, tenantId, row, triggers);
  return row;
}

/** An event as agents send it, as the first of its occurrence. */
function sentEvent(tenantId: string, event: Event): MatchRow {
  const { dimensions, type, summary, body, severity, status, acknowledged = false, expiresAt } = event;
  const timeMs = event.timestamp ?? 0n;
  const metadata = event.metadataFields ?? {};
  const report = { timeMs, severity, status, acknowledged, type, summary, body, metadata };
  const expiry = expiresAt !== undefined && { expiresAtMs: expiresAt };
  return matchRow(
    identityOf(tenantId, dimensions, eventTexts(event)),
    applyInstance([], { ...report, ...expiry }).after,
  );
}

/** An entity that the event would make. */
function withNewEntity(row: MatchRow, { dimensions }: Event): MatchRow {
  const name = nameFromDimensions(dimensions);
  const entity: EntityRow = {
    id: row.entity_id,
    name,
    dimensions,
    metadata: {},
    custom_properties: {},
    model_production_state: null,
    window_production_state: null,
    priority: null,
    model_ms: null,
    created_ms: row.start_ms,
    updated_ms: row.start_ms,
    liveness_ms: row.start_ms,
  };
  return { ...row, entity, entity_name: name, entity_dimensions: dimensions };
}

/** What a notification says of the row. */
export function previewSubject(
  row: MatchRow,
): Pick<Notification, "event" | "entity" | "subjectId" | "clear" | "occasion"> {
  const clear = row.status === CLOSED;
  return {
    clear,
    occasion: clear ? "clear" : "first",
    subjectId: occurrenceIdText(row.event_id, row.number),
    event: notifiedEvent(row),
    entity: {
      id: idText(row.entity_id),
      name: row.entity_name,
      dimensions: row.entity_dimensions as Record<string, string>,
    },
  };
}
