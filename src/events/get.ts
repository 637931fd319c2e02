import { create } from "@bufbuild/protobuf";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type GetEventRequest,
  type GetEventResponse,
  GetEventResponseSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { planWithoutValues } from "../db/plans.ts";
import { storedBytes } from "../db/stored-bytes.ts";
import { transaction } from "../db/transaction.ts";
import { parseId } from "../entities/identity.ts";
import { invalidField, notFound } from "../errors.ts";
import { type AnnotationRow, selection, toAnnotation, toEvent } from "./messages.ts";
import { parseOccurrenceId } from "./occurrence-id.ts";
import { type OccurrenceRow, occurrenceColumns } from "./rows.ts";

/** The occurrences of an event by number, of those that an id list names; the latest one when it names none. */
function asked(db: Db, tenantId: string, occurrenceIds: readonly string[], event: Buffer) {
  if (occurrenceIds.length === 0) {
    return db`o.number = (select max(number) from occurrences l where l.tenant_id = ${tenantId} and l.event_id = e.id)`;
  }
  const numbers = occurrenceIds.flatMap((text) => {
    const id = parseOccurrenceId(text);
    return id?.eventId.equals(event) ? [id.number] : [];
  });
  return db`o.number = any(${int4Array(numbers)}::int4[])`;
}

/** @throws code 3 when the occurrences that were asked for hold more than an answer may */
async function checkSize(db: Db, tenantId: string, id: Buffer, { occurrenceIds, fields }: GetEventRequest) {
  const notes = db` + coalesce((
    select sum(octet_length(a.text)) from annotations a
    where a.tenant_id = ${tenantId} and a.event_id = o.event_id and a.number = o.number
  ), 0)`;
  const [row] = await db<[{ bytes: number }]>`
    select coalesce(sum(${storedBytes(db, [db`o.metadata`, db`o.body`, db`n.dimensions`, db`n.metadata`])}
      ${fields.length === 0 ? notes : db``}), 0)::float8 as bytes
    from events e
      cross join lateral (
        select name, dimensions, metadata from entities where tenant_id = ${tenantId} and id = e.entity_id limit 1
      ) as n
      join occurrences o on o.tenant_id = ${tenantId} and o.event_id = e.id and ${asked(db, tenantId, occurrenceIds, id)}
    where e.tenant_id = ${tenantId} and e.id = ${id}`;
  if (row.bytes > pageBytesMax) {
    throw invalidField(
      "occurrenceIds",
      `names occurrences that hold ${row.bytes} bytes together, and ${pageBytesMax} are answered: name fewer`,
      FieldRule.SIZE,
    );
  }
}

/** One event with the occurrences that were asked for. @throws code 5 when there is no such event; code 3 for too much */
export async function getEvent(db: Db, tenantId: string, request: GetEventRequest): Promise<GetEventResponse> {
  const id = parseId(request.id);
  if (id === undefined) throw notFound("event", request.id);
  return await transaction(db, (tx) => {
    planWithoutValues(tx);
    return readEvent(tx, tenantId, id, request);
  });
}

async function readEvent(db: Db, tenantId: string, id: Buffer, request: GetEventRequest): Promise<GetEventResponse> {
  if (request.occurrenceIds.length > 1) await checkSize(db, tenantId, id, request);
  // Primary keys alone. The event's row comes even when none of its occurrences was asked for.
  const rows = await db<(OccurrenceRow & { count: bigint })[]>`
    select ${occurrenceColumns(db)}, e.id as event_id,
      (select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = e.id) as count
    from events e
      cross join lateral (
        select name, dimensions, metadata from entities where tenant_id = ${tenantId} and id = e.entity_id limit 1
      ) as n
      left join occurrences o on o.tenant_id = ${tenantId} and o.event_id = e.id and ${asked(db, tenantId, request.occurrenceIds, id)}
    where e.tenant_id = ${tenantId} and e.id = ${id}
    order by o.number`;
  const first = rows[0];
  if (first === undefined) throw notFound("event", request.id);
  const found = rows.filter(({ number }) => number !== null);
  const result = toEvent(first, found, first.count, tenantId, selection(request.fields));
  // With all fields: notes are none that a list of fields can name.
  if (request.fields.length === 0) await addAnnotations(db, tenantId, id, result.occurrences);
  return create(GetEventResponseSchema, { result });
}

/** Adds the notes of these occurrences of one event, the oldest first. */
async function addAnnotations(db: Db, tenantId: string, eventId: Buffer, shown: readonly Occurrence[]): Promise<void> {
  const byNumber = new Map(shown.map((occurrence) => [parseOccurrenceId(occurrence.id)?.number, occurrence]));
  const rows = await db<AnnotationRow[]>`
    select a.number, a.id, a.text, a.created_by, a.created_ms, a.updated_ms
    from annotations a
    where a.tenant_id = ${tenantId} and a.event_id = ${eventId}
      and a.number = any(${int4Array([...byNumber.keys()].flatMap((number) => number ?? []))}::int4[])
    order by a.created_ms, a.place, a.id`;
  for (const row of rows) byNumber.get(row.number)?.annotations.push(toAnnotation(row));
}
