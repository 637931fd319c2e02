import { create, toBinary } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  Aggregator,
  MatchedEntitySchema,
  type SearchMetricsRequest,
  SearchMetricsRequestSchema,
  type SearchMetricsResponse,
  SearchMetricsResponseSchema,
} from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import type { MetricSeries } from "#gen/belfry/metrics/v1/metric_series_pb.ts";
import { checkClause } from "../clause/check.ts";
import type { Db } from "../db/connect.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { type TokenPage, tokenPage } from "../db/paging/token-page.ts";
import { type FirstEntity, firstEntity, knownEntity } from "../entities/first-match.ts";
import { idText } from "../entities/identity.ts";
import { invalidField } from "../errors.ts";
import { paced } from "../event-loop.ts";
import { inTurn } from "../rpc/large-responses.ts";
import { checkEndMs } from "../rpc/times.ts";
import { bucketsIn, type Downsampling, downsample, looksAtNeighbours, NEIGHBOUR_MS } from "./aggregate.ts";
import type { Points } from "./codec/chunk.ts";
import {
  type EntitySeries,
  type Facts,
  type Named,
  placeOf,
  readFirst,
  type SeriesPlace,
  withEntries,
} from "./find-series.ts";
import { toMetricSeries } from "./messages.ts";
import { type MetricPredicate, metricPredicate } from "./metric-clause.ts";
import { isCounter } from "./notes.ts";
import { countPoints, readPoints, readPointsUpTo, type Span, type Turns } from "./read.ts";

/** Points of one series with NONE, and buckets of one with the others. */
const valuesMax = 100_000;
/** Values of a page, unless one series has more. */
const pageValuesMax = 500_000;
/** Points that are in memory at once, unless one series has more. */
const readMax = 1_000_000;
/** Points of one series that one search looks at. */
const seriesPointsMax = 20_000_000;
/** Pages that may hold more values are made one after the other. */
const smallValues = 20_000;
/** The first whole ms that is not before a time. */
const toMs = ({ seconds, nanos }: Timestamp) => Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);

function downsampling({ timeRange, downsample: wanted }: SearchMetricsRequest): Omit<Downsampling, "isRate"> {
  const periodMs = readPeriod(wanted?.period ?? "", "downsample.period");
  const how = {
    aggregator: wanted?.aggregator as Aggregator,
    periodMs,
    startMs: toMs(timeRange?.start as Timestamp),
    endMs: toMs(timeRange?.end as Timestamp),
  };
  checkEndMs(BigInt(how.endMs), "timeRange.end");
  if (how.aggregator !== Aggregator.NONE && bucketsIn({ ...how, isRate: false }) > valuesMax) {
    throw invalidField(
      "downsample.period",
      `must not make more than ${valuesMax} buckets of timeRange`,
      FieldRule.SIZE,
    );
  }
  return how;
}

/** How many values a series can have. */
const valuesAtMost = (how: Omit<Downsampling, "isRate">) =>
  how.aggregator === Aggregator.NONE ? valuesMax : bucketsIn({ ...how, isRate: false });

/** What decides the result, but for the page. */
function queryText(request: SearchMetricsRequest): string {
  const query = { ...request, pageSize: 0, pageToken: "" };
  return Buffer.from(toBinary(SearchMetricsRequestSchema, query)).toString("base64");
}

const allSeries: MetricPredicate = { matches: () => true, asksEntry: false };

/** Series in groups whose points may be in memory at once. @throws code 3 where one has too many */
function groupsOf(facts: readonly Named[], counts: ReadonlyMap<number, number>): Named[][] {
  const groups: Named[][] = [];
  let room = 0;
  for (const each of facts) {
    const points = counts.get(each.number) ?? 0;
    if (points > seriesPointsMax) {
      throw invalidField(
        "timeRange",
        `holds ${points} points of ${each.metric}; at most ${seriesPointsMax} are looked at`,
        FieldRule.SIZE,
      );
    }
    if (points > room || groups.length === 0) {
      groups.push([]);
      room = readMax;
    }
    groups.at(-1)?.push(each);
    room -= points;
  }
  return groups;
}

function valuesOf(facts: Facts, points: Points, how: Omit<Downsampling, "isRate">): Points {
  const made = downsample(points, { ...how, isRate: facts.entry?.isRate || isCounter(facts) });
  if (made.times.length > valuesMax) {
    throw invalidField(
      "timeRange",
      `holds ${made.times.length} points of ${facts.metric}; NONE answers at most ${valuesMax}`,
      FieldRule.SIZE,
    );
  }
  return made;
}

/**
 * Series of the first entity, by name, that the clause matches, downsampled, page by page in the order of their metrics' names and labels.
 * Pages may hold fewer than asked for, so that an answer stays within bounds. @throws code 3, code 12
 */
export async function searchMetrics(
  db: Db,
  tenant: { id: string; name: string },
  request: SearchMetricsRequest,
  signal: AbortSignal,
): Promise<SearchMetricsResponse> {
  const { entityClause, metricClause } = request;
  if (entityClause === undefined) throw invalidField("entityClause", "is required", FieldRule.REQUIRED);
  checkClause(entityClause, "entityClause");
  const wanted = metricClause === undefined ? allSeries : metricPredicate(metricClause, "metricClause");
  const how = downsampling(request);
  const page = tokenPage("metrics", tenant.id, request, queryText(request));
  const place = page.after && placeIn(page.after);
  const first: FirstEntity = place
    ? knownEntity(db, tenant.id, place.entityId)
    : firstEntity(db, tenant, entityClause, "entityClause");
  const turns = { signal, pace: paced(() => signal.throwIfAborted(), tenant.id) };
  const asked = { ...wanted, after: place?.after, max: page.rowsMax as number };
  const facts = await readFirst(db, tenant.id, first, asked, signal);
  if (facts === undefined) return create(SearchMetricsResponseSchema);
  const make = () => readPage(db, tenant.id, facts, page, how, turns);
  const response = await (facts.found.length * valuesAtMost(how) > smallValues
    ? inTurn(tenant.id, signal, make)
    : make());
  const { entityId, entityName: name = "", others } = facts;
  response.entity = create(MatchedEntitySchema, { id: idText(entityId), name, otherCount: others });
  return response;
}

/** The place of a series as page tokens hold it. */
function textsAt(entityId: Buffer, series: Named): string[] {
  const { metric, begin, hash } = placeOf(series);
  return [entityId.toString("hex"), metric, begin, hash.toString("hex")];
}

/** The place in a page token; one of before labels has none. */
function placeIn(texts: NonNullable<TokenPage["after"]>): { entityId: Buffer; after: SeriesPlace } {
  const [entity, metric, begin = "", hash = ""] =
    texts.texts.length === 2
      ? keyTextsOf(texts, ["bytea", "text"])
      : keyTextsOf(texts, ["bytea", "text", "text", "bytea"]);
  return {
    entityId: Buffer.from(entity ?? "", "hex"),
    after: { metric: metric ?? "", begin: begin ?? "", hash: Buffer.from(hash ?? "", "hex") },
  };
}

/** Points of series, in groups that may be in memory at once; in one, by one statement, where all may. */
async function* readGroups(
  db: Db,
  tenantId: string,
  facts: readonly Named[],
  span: Span,
  turns: Turns,
): AsyncGenerator<Map<number, Points>> {
  const numbersOf = (group: readonly Named[]) => group.map(({ number }) => number);
  const all = await readPointsUpTo(db, tenantId, numbersOf(facts), span, readMax, turns);
  if (all !== undefined) return yield all;
  const counts = await countPoints(db, tenantId, numbersOf(facts), span, turns.signal);
  for (const group of groupsOf(facts, counts)) yield await readPoints(db, tenantId, numbersOf(group), span, turns);
}

async function readPage(
  db: Db,
  tenantId: string,
  { entityId, found }: EntitySeries,
  page: TokenPage,
  how: Omit<Downsampling, "isRate">,
  turns: Turns,
): Promise<SearchMetricsResponse> {
  const { items, nextPageToken } = page.cut(found, (each) => textsAt(entityId, each));
  if (items.length === 0) return create(SearchMetricsResponseSchema);
  const around = looksAtNeighbours(how.aggregator) ? NEIGHBOUR_MS : 0;
  const span: Span = { firstMs: how.startMs - around, lastMs: how.endMs - 1 + around };
  const groups = readGroups(db, tenantId, items, span, turns);
  // The first points and the dictionary's entries are asked for at once.
  const [entered, first] = await Promise.all([withEntries(db, tenantId, items), groups.next()]);
  const metrics: MetricSeries[] = [];
  let values = 0;
  for (let group = first; !group.done; group = await groups.next()) {
    const points = group.value;
    for (const each of entered.filter(({ number }) => points.has(number))) {
      await turns.pace();
      const made = valuesOf(each, points.get(each.number) as Points, how);
      values += made.times.length;
      if (values > pageValuesMax && metrics.length > 0) return cutShort(metrics, items, page, entityId);
      await turns.pace();
      metrics.push(toMetricSeries(each, made));
    }
  }
  return create(SearchMetricsResponseSchema, { metrics, nextPageToken });
}

/** A page that ends earlier, after the series that it has. */
function cutShort(metrics: MetricSeries[], items: readonly Named[], page: TokenPage, entityId: Buffer) {
  const last = items[metrics.length - 1] as Named;
  const nextPageToken = page.tokenOf(textsAt(entityId, last));
  return create(SearchMetricsResponseSchema, { metrics, nextPageToken });
}

const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const periodMsMax = 36_500 * unitsMs.d;

/**
 * The length of a bucket, ms: a number and ms, s, m, h or d, as in `500ms`, `3600s`, `1.5h`.
 * @throws code 3 at `path` for any other text, less than 1 ms, a fraction of one, or more than 36,500 days
 */
export function readPeriod(text: string, path: string): number {
  const [, number, unit] = /^(\d{1,15}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined)
    throw invalidField(path, "must be a number and ms, s, m, h or d, such as 3600s", FieldRule.FORMAT);
  const [whole = "", fraction = ""] = number.split(".");
  // As a fraction of whole numbers: 1.1 × 1000 is not 1100 in binary.
  const scale = 10n ** BigInt(fraction.length);
  const product = BigInt(whole + fraction) * BigInt(unitsMs[unit as keyof typeof unitsMs]);
  if (product % scale !== 0n) throw invalidField(path, "must be a whole number of ms", FieldRule.RANGE);
  const periodMs = Number(product / scale);
  if (periodMs < 1) throw invalidField(path, "must be at least 1ms", FieldRule.RANGE);
  if (periodMs > periodMsMax) throw invalidField(path, "must be at most 36500d", FieldRule.RANGE);
  return periodMs;
}
