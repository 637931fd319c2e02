import { create } from "@bufbuild/protobuf";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService, type FieldCounts } from "#gen/belfry/events/v1/query_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { valuesMatcher } from "./clause-matchers.ts";
import { byEntity, clauseOfGroup } from "./grouping.ts";
import { type EventRow, rowKey } from "./list-rows.ts";
import type { QueryInit } from "./query.ts";

const silences = clientOf(SilenceService);
const events = clientOf(EventQueryService);

/** Most labels that are compared. */
const labelsMax = 60;
/** Most labels in a call: a count takes 16 fields, one of them for the total. */
const labelsInCall = 15;
/** Most values that a matcher lists. */
const valuesMax = 50;
/** Longest matcher, and most matchers, of a silence. */
const matcherLengthMax = 2048;
const matchersMax = 50;

/** A label that all occurrences have, with its values. */
interface SharedLabel {
  readonly label: string;
  readonly values: readonly string[];
}

/** Describes what the occurrences of a query have in common. */
interface Shared {
  /** Their number. */
  readonly total: number;
  /** The labels that all of them have, of those that were asked for. */
  readonly labels: readonly SharedLabel[];
}

/**
 * Returns a matcher for each label that all these occurrences have, the alert name first. Labels with too many or too long values are
 * left out. Labels are never empty, so no matcher accepts the empty text.
 * @throws if some of these occurrences have changed
 */
export async function sharedMatchers(rows: readonly EventRow[]): Promise<string[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const { labels } = await silences.listSilences({ occurrenceId: first.occurrence.id });
  const names = Object.keys(labels).sort((a, b) => Number(b === "alertname") - Number(a === "alertname"));
  const { total, labels: shared } = await sharedLabels(
    {
      clause: create(ClauseSchema, { withIds: { ids: rows.map(rowKey) } }),
      statuses: [...new Set(rows.map(({ occurrence }) => occurrence.status ?? Status.DEFAULT))],
    },
    names,
  );
  if (total !== rows.length) throw new Error("Some of these rows have changed. Select them again.");
  // Labels with one common value come before those with several.
  const order = ({ label, values }: SharedLabel) => (label === "alertname" ? 0 : Math.min(values.length, 2));
  return shared
    .filter(({ values }) => values.length <= valuesMax)
    .sort((a, b) => order(a) - order(b))
    .map(({ label, values }) => valuesMatcher(label, values))
    .filter((matcher) => matcher.length <= matcherLengthMax)
    .slice(0, matchersMax);
}

/**
 * Returns the dimensions of an entity that all of its open occurrences have as labels: alerts may have come without them. All dimensions if
 * nothing of it is open.
 */
export async function labelsOfEntity(
  entity: string,
  dimensions: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const query = { clause: clauseOfGroup(byEntity, entity), statuses: [Status.OPEN, Status.DEFAULT] };
  const { total, labels } = await sharedLabels(query, Object.keys(dimensions), signal);
  if (total === 0) return dimensions;
  const same = labels.filter(({ label, values }) => values.length === 1 && values[0] === dimensions[label]);
  return Object.fromEntries(same.map(({ label, values: [value = ""] }) => [label, value]));
}

/** Counts a query's occurrences, and the values of those of these labels that all of them have; of the first 60 labels. */
async function sharedLabels(query: QueryInit, names: readonly string[], signal?: AbortSignal): Promise<Shared> {
  const calls = [];
  for (let from = 0; from === 0 || from < Math.min(names.length, labelsMax); from += labelsInCall) {
    const fields = ["severity", ...names.slice(from, from + labelsInCall).map(fieldOf)].map((field) => ({ field }));
    calls.push(events.countEvents({ query, fields }, { ...(signal && { signal }) }));
  }
  const results = Object.assign({}, ...(await Promise.all(calls)).map(({ results }) => results)) as Results;
  const total = sumOf(results.severity);
  const labels = names.flatMap((label): SharedLabel[] => {
    const counts = results[fieldOf(label)];
    if (sumOf(counts) !== total) return [];
    return [{ label, values: counts?.values.map(({ value }) => String(value?.kind.value)) ?? [] }];
  });
  return { total, labels };
}

type Results = Record<string, FieldCounts | undefined>;

const fieldOf = (label: string) => `labels.${label}`;

const sumOf = (counts: FieldCounts | undefined) =>
  counts?.values.reduce((sum, { count }) => sum + Number(count), 0) ?? 0;
