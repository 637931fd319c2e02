import { create } from "@bufbuild/protobuf";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService, type FieldCounts } from "#gen/belfry/events/v1/query_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { valuesMatcher } from "./clause-matchers.ts";
import { type EventRow, eventIdsOf, startedWith } from "./list.ts";
import { allOf } from "./query.ts";

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
  const calls = [];
  for (let from = 0; from < Math.min(names.length, labelsMax); from += labelsInCall)
    calls.push(sharedLabels(rows, names.slice(from, from + labelsInCall)));
  const shared = (await Promise.all(calls)).flat();
  // Labels with one common value come before those with several.
  const order = ({ label, values }: SharedLabel) => (label === "alertname" ? 0 : Math.min(values.length, 2));
  return shared
    .filter(({ values }) => values.length <= valuesMax)
    .sort((a, b) => order(a) - order(b))
    .map(({ label, values }) => valuesMatcher(label, values))
    .filter((matcher) => matcher.length <= matcherLengthMax)
    .slice(0, matchersMax);
}

/** Returns those of these labels that all occurrences have. */
async function sharedLabels(rows: readonly EventRow[], names: readonly string[]): Promise<SharedLabel[]> {
  const query = {
    // Without their start, earlier occurrences of these events would be counted, too.
    clause: allOf([create(ClauseSchema, { withIds: { ids: eventIdsOf(rows) } }), startedWith(rows)]),
    statuses: [...new Set(rows.map(({ occurrence }) => occurrence.status ?? Status.DEFAULT))],
  };
  const fields = ["severity", ...names.map(fieldOf)].map((field) => ({ field }));
  const { results } = await events.countEvents({ query, fields });
  const total = sumOf(results.severity);
  if (total !== rows.length) throw new Error("Some of these rows have changed. Select them again.");
  return names.flatMap((label) => {
    const counts = results[fieldOf(label)];
    if (sumOf(counts) !== total) return [];
    return { label, values: counts?.values.map(({ value }) => String(value?.kind.value)) ?? [] };
  });
}

const fieldOf = (label: string) => `labels.${label}`;

const sumOf = (counts: FieldCounts | undefined) =>
  counts?.values.reduce((sum, { count }) => sum + Number(count), 0) ?? 0;
