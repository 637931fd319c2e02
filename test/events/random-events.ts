import fc from "fast-check";
import type { Db } from "../../src/db/connect.ts";
import { type EventRow, identityColumns } from "../../src/events/fields.ts";
import { eventAndEntity, occurrenceColumns } from "../../src/events/rows.ts";
import { seed } from "../support/cases.ts";

const dayMs = 86_400_000;
/** Yesterday's begin: what is older than it is kept goes while a test runs. */
const baseMs = (Math.floor(Date.now() / dayMs) - 1) * dayMs;

// Few values, so that most of what is asked for is there, in several places and spellings.
export const words = ["a", "A", "7", "7.0", "true", "a b", 'q"uo\\te', "ä"];
export const keys = ["source", "zone", "type", "label.zone", "labels.zone", "alertname", "severity"];
const word = fc.constantFrom(...words);
const values = fc.oneof(
  word,
  fc.constantFrom<unknown>(7, true, null),
  fc.array(fc.oneof(word, fc.constant(7)), { maxLength: 2 }),
);
const estates = fc.array(
  fc.record({
    dimensions: fc.dictionary(fc.constantFrom("source", "zone", "labels.zone"), word, { minKeys: 1, maxKeys: 2 }),
    name: word,
    dedupKey: fc.oneof(word, fc.constant(null)),
    labels: fc.oneof(fc.dictionary(fc.constantFrom(...keys), word), fc.constant(null)),
    type: fc.oneof(word, fc.constant("alert")),
    severity: fc.nat(5),
    closed: fc.boolean(),
    deleted: fc.boolean(),
    metadata: fc.dictionary(fc.constantFrom(...keys), values),
    seenMs: fc.nat(9).map((slot) => baseMs + slot * 200_000),
  }),
  { minLength: 60, maxLength: 60 },
);

const plainFields =
  `id name dedupKey type severity status entityName lastSeen startTime endTime summary coreProperties.name
  coreProperties.source`.split(/\s+/);
const fields = plainFields.concat(
  keys.flatMap((key) => [key, `dimensions.${key}`, `metadataFields.${key}`, `labels.${key}`]),
);
const asked = fc.oneof(word, fc.constantFrom<unknown>(7, 3, true, baseMs + 400_000));
const isEnumeration = (field: string) => field === "severity" || field === "status";
const leaf = fc.oneof(
  fc
    .record({
      field: fc.constantFrom(...fields),
      operation: fc.constantFrom(
        "OP_EQUALS",
        "OP_NOT_EQUALS",
        "OP_STARTS_WITH",
        "OP_CONTAINS",
        "OP_GREATER",
        "OP_EXISTS",
      ),
      value: asked,
    })
    .map(({ field, operation, value }) => {
      if (operation === "OP_EXISTS") return { filter: { field, operation } };
      const isText = operation === "OP_STARTS_WITH" || operation === "OP_CONTAINS";
      const fitting = isText ? String(value) : typeof value === "boolean" && operation === "OP_GREATER" ? 3 : value;
      return { filter: { field, operation, value: isEnumeration(field) && !isText ? 3 : fitting } };
    }),
  fc
    .record({
      field: fc.constantFrom(...fields.filter((field) => !isEnumeration(field))),
      values: fc.array(asked, { maxLength: 3 }),
    })
    .map((of) => ({ in: of })),
);
export const clauses = fc.letrec<{ clause: object }>((tie) => ({
  clause: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie("clause"), { minLength: 1, maxLength: 3 }).map((of) => ({ and: { clauses: of } })),
    fc.array(tie("clause"), { minLength: 1, maxLength: 3 }).map((of) => ({ or: { clauses: of } })),
    tie("clause").map((clause) => ({ not: { clause } })),
  ),
})).clause;

/** Gives a tenant 60 events on 40 entities, half of them with an occurrence before the last. */
export async function fillEvents(db: Db, tenantId: string): Promise<void> {
  const rows = fc.sample(estates, { numRuns: 1, seed })[0] ?? [];
  const texts = JSON.stringify(
    rows.map((row, i) => ({ ...row, entity: `${i % 40}`.padStart(40, "0"), event: `${i}`.padStart(40, "e") })),
  );
  const row = db`jsonb_to_recordset(${texts}::text::jsonb) as row (dimensions jsonb, name text, "dedupKey" text, labels jsonb, type text,
    severity int2, closed bool, deleted bool, metadata jsonb, "seenMs" int8, entity text, event text)`;
  await db`insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms, deleted_ms)
    select distinct on (entity) ${tenantId}::uuid, decode(entity, 'hex'), name, dimensions, '{}'::jsonb, 0, 0, 0,
      case when deleted then 1 end
    from ${row}`;
  await db`insert into events (tenant_id, id, entity_id, name, dedup_key, alert_labels)
    select ${tenantId}::uuid, decode(event, 'hex'), decode(entity, 'hex'), name, "dedupKey", nullif(labels, 'null')::json from ${row}`;
  await db`insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
      last_seen_ms, end_ms, instance_count)
    select ${tenantId}::uuid, decode(event, 'hex'), 1, severity, case when closed then 3 else 1 end, false, type, name, '', metadata,
      "seenMs" - 1000, "seenMs", case when closed then "seenMs" end, 1
    from ${row}`;
  // Of some events an earlier one, in the midst of those of others.
  await db`insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
      last_seen_ms, end_ms, instance_count)
    select ${tenantId}::uuid, decode(event, 'hex'), 2, severity, 3, false, type, name, '', metadata, "seenMs" - 701000,
      "seenMs" - 700000, "seenMs" - 700000, 1
    from ${row} where event ~ '[2-6]$'`;
}
/** A tenant's occurrences, as clauses read them. */
export async function readEvents(db: Db, tenantId: string): Promise<EventRow[]> {
  return await db<EventRow[]>`
    select ${occurrenceColumns(db)}, ${identityColumns(db)}, 1::int8 as count
    from occurrences o ${eventAndEntity(db, tenantId)} where o.tenant_id = ${tenantId}`;
}
