import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { ActiveCriteria, type EventQuery } from "#gen/belfry/events/v1/query_service_pb.ts";
import { beginsSql } from "../clause/code-point-order.ts";
import { withNumbers } from "../clause/enumeration.ts";
import type { Condition, Literal } from "../clause/field.ts";
import type { LabelMatcher } from "../clause/label-matcher.ts";
import { numericText } from "../clause/numeric-text.ts";
import { int4Array, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { entityResolver } from "../entities/fields.ts";
import { idIndex } from "../entities/identity.ts";
import { anyTextContains, foldedPair, nameText } from "../entities/texts.ts";
import { type Candidates, type CandidatesOf, choice, source, union } from "./candidates.ts";
import { bareKeyOf, type ColumnField, columnNumbers, type EventField, eventField } from "./fields.ts";
import { labelPrefix } from "./labels.ts";
import { CLOSED } from "./lifecycle.ts";
import { hasTerm, type MapTerm } from "./terms.ts";

/** Says where the occurrences are that satisfy a condition of a query's clause. */
export function candidatesOfQuery(db: Db, tenantId: string): CandidatesOf {
  return (asked) => {
    if (asked.kind === "label") return ofLabel(db, tenantId, asked.matcher);
    if (asked.asks === "exists") return undefined;
    const field = eventField(asked.field);
    if (field.kind !== "column") return ofKey(db, tenantId, field, asked.asks);
    return ofColumn(db, tenantId, field.name, withNumbers({ numbers: columnNumbers(field.name) }, asked.asks));
  };
}

/** Stands before the name of a field of the entity in clauses of triggers. */
const ofEntity = "entity.";

/** The same of a trigger's clause, whose texts are in lower case, as are those of one index on entities. */
export function candidatesOfTrigger(db: Db, tenantId: string): CandidatesOf {
  return (asked) => {
    if (asked.kind === "label") return ofLabel(db, tenantId, asked.matcher);
    if (asked.asks === "exists") return undefined;
    const isOfEntity = asked.field.startsWith(ofEntity);
    const field = eventField(isOfEntity ? asked.field.slice(ofEntity.length) : asked.field);
    if (field.kind === "dimension") return ofFoldedDimension(db, field.key, asked.asks);
    if (field.kind !== "column") return undefined;
    if (field.name === (isOfEntity ? "name" : "entityName")) return ofEntityName(db, tenantId, asked.asks, false);
    return isOfEntity || !times.has(field.name) ? undefined : ofColumn(db, tenantId, field.name, asked.asks);
  };
}

const times: ReadonlySet<ColumnField> = new Set(["startTime", "lastSeen", "endTime"]);

function ofFoldedDimension(db: Db, key: string, asks: Condition): Candidates | undefined {
  const values = equalTo(asks);
  if (values === undefined) return source("entities_text", anyTextContains(db, asks)?.sql());
  const pairs = values.map((value) => (typeof value === "string" ? foldedPair(db, key, value) : undefined));
  return union(
    db,
    pairs.map((pair) => source("entities_text", pair)),
  );
}

/** The values, one of which a field must equal; undefined: it may be other ones. */
function equalTo([only]: Condition): readonly Literal[] | undefined {
  if (only?.operation === Operation.OP_EQUALS) return [only.value];
  return only?.operation === Operation.OP_IN ? only.value : undefined;
}

function ofColumn(db: Db, tenantId: string, name: ColumnField, asks: Condition): Candidates | undefined {
  const values = equalTo(asks);
  switch (name) {
    case "id":
      return source("events_pkey", idIndex(db, db`id` as Fragment, asks)?.sql());
    case "entity":
      return source("events_entity", idIndex(db, db`entity_id` as Fragment, asks)?.sql());
    case "entityName":
      return ofEntityName(db, tenantId, asks, true);
    case "name":
      return source("events_name", beginningOf(db, db`name` as Fragment, asks));
    case "dedupKey":
      return source("events_key", beginningOf(db, db`dedup_key` as Fragment, asks));
    case "type":
      return source("occurrences_terms", textIn(db, db`type` as Fragment, asks));
    case "status":
      return values?.every((value) => asNumber(value) !== CLOSED) ? source("occurrences_open", isOpen(db)) : undefined;
    case "startTime":
      // What began after a time was seen after it.
      return inTime(db, "occurrences_seen", { low: boundsOf(asks).low });
    case "lastSeen":
      return inTime(db, "occurrences_seen", boundsOf(asks));
    case "endTime":
      return inTime(db, "occurrences_end", boundsOf(asks));
    default:
      return undefined;
  }
}

/** Texts that equal or begin with a value. */
function beginningOf(db: Db, column: Fragment, asks: Condition): Fragment | undefined {
  const [only] = asks;
  if (only?.operation === Operation.OP_STARTS_WITH) return beginsSql(db, column, only.value);
  return textIn(db, column, asks);
}

function textIn(db: Db, column: Fragment, asks: Condition): Fragment | undefined {
  const values = equalTo(asks);
  // A number equals each text that reads as it.
  if (values?.every((value) => typeof value !== "number") !== true) return undefined;
  const texts = values.filter((value) => typeof value === "string");
  return db`${column} = any(${textArray(texts)}::text[])` as Fragment;
}

const asNumber = (value: Literal) => (typeof value === "string" ? numericText(value) : value);

interface TimeBounds {
  low?: number | undefined;
  high?: number | undefined;
}

/** The time of an index that holds them by the five minutes. */
const slotMs = 300_000;
/** Beyond all times, and within a bigint. */
const msBound = 9e15;

/** Bounds of a time, both included; another one may be refused by them or not. */
function boundsOf(asks: Condition): TimeBounds {
  const of = (...operations: Operation[]) =>
    asks.flatMap(({ operation, value }) => {
      const ms = operations.includes(operation) ? asNumber(value as Literal) : undefined;
      return typeof ms === "number" && Number.isFinite(ms) ? [ms] : [];
    });
  const lows = of(Operation.OP_EQUALS, Operation.OP_GREATER, Operation.OP_GREATER_OR_EQ);
  const highs = of(Operation.OP_EQUALS, Operation.OP_LESS, Operation.OP_LESS_OR_EQ);
  return {
    low: lows.length === 0 ? undefined : Math.max(...lows),
    high: highs.length === 0 ? undefined : Math.min(...highs),
  };
}

/** Occurrences from a time on, or between two; undefined: what lies before a time may be all that there is. */
function inTime(
  db: Db,
  index: "occurrences_seen" | "occurrences_end",
  { low, high }: TimeBounds,
): Candidates | undefined {
  if (low === undefined) return undefined;
  const [column, unitMs] = index === "occurrences_seen" ? [db`seen_slot`, slotMs] : [db`end_ms`, 1];
  const unit = (ms: number) => BigInt(Math.floor(Math.min(Math.max(ms, -msBound), msBound) / unitMs));
  const from = db`${column} >= ${unit(low)}`;
  return source(index, high === undefined ? from : (db`(${from} and ${column} <= ${unit(high)})` as Fragment));
}

/** Tells whether a query asks for open occurrences alone. */
export const asksForOpen = ({ statuses }: EventQuery): boolean =>
  statuses.length > 0 && statuses.every((status) => status !== CLOSED);

/** Where the occurrences are that a query's other members ask for. */
export function candidatesOfMembers(db: Db, query: EventQuery): Candidates | undefined {
  const { start, end } = query.timeRange ?? {};
  const ms = (time: bigint | undefined) => (time === undefined ? undefined : Number(time));
  const bounds = { low: ms(start), high: ms(end) };
  const overlapping = query.activeCriteria === ActiveCriteria.BY_OVERLAP;
  const inRange = overlapping
    ? start !== undefined && source("occurrences_end", db`(end_ms is null or end_ms >= ${start})` as Fragment)
    : inTime(db, "occurrences_seen", bounds);
  const { severities } = query;
  const ofSeverities = severities.length === 0 ? db`true` : db`severity = any(${int4Array(severities)}::int4[])`;
  return choice([
    inRange || undefined,
    asksForOpen(query) ? source("occurrences_open", db`(${isOpen(db)} and ${ofSeverities})` as Fragment) : undefined,
  ]);
}

/** By occurrences_open. */
const isOpen = (db: Db) => db`(end_ms is null and number >= 0)` as Fragment;

function ofKey(
  db: Db,
  tenantId: string,
  field: Exclude<EventField, { kind: "column" }>,
  asks: Condition,
): Candidates | undefined {
  const { kind, key } = field;
  switch (kind) {
    case "dimension":
      return ofEntityField(db, tenantId, `dimensions.${key}`, asks);
    case "coreProperty":
      if (key === "name") return ofEntityName(db, tenantId, asks, true);
      if (key === "_svc_direct_entity_id")
        return source("events_entity", idIndex(db, db`entity_id` as Fragment, asks)?.sql());
      return ofEntityField(db, tenantId, `coreProperties.${key}`, asks);
    case "metadata":
      return ofMetadata(db, key, asks);
    case "bare":
      return union(db, [ofEntityField(db, tenantId, `dimensions.${key}`, asks), ofMetadata(db, key, asks)]);
    case "label": {
      const values = equalTo(asks);
      if (values === undefined) return undefined;
      const bare = bareKeyOf(key);
      return union(db, [
        ...values.map((value) => (typeof value === "string" ? ofLabelValue(db, tenantId, key, value) : undefined)),
        ofEntityField(db, tenantId, `dimensions.${bare}`, asks),
        ofMetadata(db, bare, asks),
      ]);
    }
  }
}

/** Entities, living or deleted, by a condition on one of their fields. */
function ofEntityField(db: Db, tenantId: string, key: string, asks: Condition): Candidates | undefined {
  return source("entities_terms", entityResolver(tenantId).field(key)?.index?.(db, asks)?.sql());
}

/** Entities by their names; exactly: case counts. Those that live and those that are deleted have an index each. */
function ofEntityName(db: Db, tenantId: string, asks: Condition, exactly: boolean): Candidates | undefined {
  const begins = exactly ? beginningOf(db, db`name` as Fragment, asks) : undefined;
  if (begins === undefined) return source("entities_terms", nameText(db, tenantId, asks)?.sql());
  return union(db, [
    source("entities_name", db`deleted_ms is null and ${begins}` as Fragment),
    source("entities_deleted", db`deleted_ms is not null and ${begins}` as Fragment),
  ]);
}

/** Occurrences whose metadata hold under a key what is asked for. */
function ofMetadata(db: Db, key: string, asks: Condition): Candidates | undefined {
  const values = equalTo(asks);
  return source("occurrences_terms", values && hasTerm(db, db`metadata` as Fragment, [{ key, values }]));
}

/** Tells where the occurrences are that have a label; its absence, and what differs from a value, is everywhere. */
function ofLabel(db: Db, tenantId: string, { name, operator, value }: LabelMatcher): Candidates | undefined {
  return operator === "=" ? ofLabelValue(db, tenantId, name, value) : undefined;
}

const withLabels = (db: Db, condition: Fragment | undefined) =>
  condition && (db`(alert_labels is not null and ${condition})` as Fragment);

/** A label's value is a dimension, among the metadata, or a text of the event: see `labelView`. */
function ofLabelValue(db: Db, tenantId: string, name: string, value: string): Candidates | undefined {
  // A severity is a column of its own.
  if (value === "" || name === "severity") return undefined;
  const values = value === "true" || value === "false" ? [value, value === "true"] : [value];
  const terms = [name, `${labelPrefix}${name}`].map((key): MapTerm => ({ key, values }));
  return union(db, [
    ofEntityField(db, tenantId, `dimensions.${name}`, [{ operation: Operation.OP_EQUALS, value }]),
    source("occurrences_terms", hasTerm(db, db`metadata` as Fragment, terms)),
    source("events_labels", withLabels(db, hasTerm(db, db`(alert_labels::jsonb)` as Fragment, terms))),
    ...(name === "type" ? [source("occurrences_terms", db`type = ${value}::text` as Fragment)] : []),
    ...(name === "alertname" ? [source("events_name", db`name = ${value}::text` as Fragment)] : []),
  ]);
}
