import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  type CountEventFrequencyRequest,
  type CountEventFrequencyResponse,
  CountEventFrequencyResponseSchema,
  type CountEventsRequest,
  type CountEventsResponse,
  CountEventsResponseSchema,
  EventQuerySchema,
  FieldCountsSchema,
  FieldFrequencySchema,
  ValueCountSchema,
  type ValueFrequency,
  ValueFrequencySchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { invalidField } from "../errors.ts";
import { type Count, countByGroup, countsMax, fieldNames, groupNamesOf, tooManyCounts } from "./count-statement.ts";
import { refuseUnused } from "./matching.ts";

/** Counts occurrences, or their instances, by the values of fields. */
export async function countEvents(
  db: Db,
  tenantId: string,
  request: CountEventsRequest,
  signal: AbortSignal,
): Promise<CountEventsResponse> {
  const query = request.query ?? create(EventQuerySchema);
  refuseUnused(query, "query", ["sortBy", "pageInput", "fields"]);
  const fields = fieldNames(request.fields);
  const counts = await countByGroup(db, tenantId, { query, fields, countInstances: request.countInstances }, signal);
  const results = new Map(groupNamesOf(fields).map((name) => [name, create(FieldCountsSchema)]));
  for (const { field, value, count } of counts) {
    results.get(field)?.values.push(create(ValueCountSchema, { value: fromJson(ValueSchema, value), count }));
  }
  return create(CountEventsResponseSchema, { results: Object.fromEntries(results) });
}

const bucketsMax = 10_000n;
const bucketsDefault = 100n;
const bucketMsMin = 1000n;

/** The buckets of a time range: multiples of their length from the epoch, the first one holds the range's start. */
function buckets({ query, downsample }: CountEventFrequencyRequest): { bucketMs: bigint; startsMs: bigint[] } {
  const { start, end } = query?.timeRange ?? {};
  if (start === undefined) throw invalidField("query.timeRange.start", "is needed", FieldRule.REQUIRED);
  if (end === undefined) throw invalidField("query.timeRange.end", "is needed", FieldRule.REQUIRED);
  if (start < 0n) throw invalidField("query.timeRange.start", "must not lie before 1970", FieldRule.RANGE);
  if (start >= end) throw invalidField("query.timeRange", "start must be before end", FieldRule.START_BEFORE_END);
  const share = (end - start) / bucketsDefault;
  const bucketMs = downsample || (share > bucketMsMin ? share : bucketMsMin);
  const first = start / bucketMs;
  const count = (end - 1n) / bucketMs - first + 1n;
  if (count > bucketsMax) {
    throw invalidField(
      "downsample",
      `makes ${count} buckets of this time range; ${bucketsMax} are allowed`,
      FieldRule.SIZE,
    );
  }
  return { bucketMs, startsMs: Array.from({ length: Number(count) }, (_, i) => (first + BigInt(i)) * bucketMs) };
}

/** The counts of one field, a list of one count a bucket for each value, of which there may be `valuesMax`. */
function series(
  counts: readonly Count[],
  startsMs: readonly bigint[],
  bucketMs: bigint,
  valuesMax: number,
): ValueFrequency[] {
  const firstMs = startsMs[0] ?? 0n;
  const values = new Map<string | number, bigint[]>();
  for (const { value, bucketMs: startMs, count } of counts) {
    let list = values.get(value);
    if (list === undefined) {
      if (values.size >= valuesMax) throw tooManyCounts();
      list = new Array<bigint>(startsMs.length).fill(0n);
      values.set(value, list);
    }
    list[Number((startMs - firstMs) / bucketMs)] = count;
  }
  return [...values].map(([value, list]) =>
    create(ValueFrequencySchema, { value: fromJson(ValueSchema, value), counts: list }),
  );
}

/** Counts occurrences, or their instances, by the values of fields in buckets of time. */
export async function countEventFrequency(
  db: Db,
  tenantId: string,
  request: CountEventFrequencyRequest,
  signal: AbortSignal,
): Promise<CountEventFrequencyResponse> {
  const { bucketMs, startsMs } = buckets(request);
  const query = request.query ?? create(EventQuerySchema);
  refuseUnused(query, "query", ["sortBy", "pageInput", "fields"]);
  const fields = fieldNames(request.fields, request.groupBy);
  const { countInstances } = request;
  const counts = await countByGroup(db, tenantId, { query, fields, countInstances, bucketMs }, signal);
  const byField = Map.groupBy(counts, ({ field }) => field);
  let valuesMax = Math.floor(countsMax / startsMs.length);
  const results = groupNamesOf(fields).map((name) => {
    const values = series(byField.get(name) ?? [], startsMs, bucketMs, valuesMax);
    valuesMax -= values.length;
    return [name, create(FieldFrequencySchema, { values })] as const;
  });
  return create(CountEventFrequencyResponseSchema, { timestamps: startsMs, results: Object.fromEntries(results) });
}
