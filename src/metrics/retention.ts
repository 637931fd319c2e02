import type { Config } from "../config/settings.ts";
import { bigintArray, byteaArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { PartitionedTable } from "../db/partitions.ts";
import { planWithoutValues } from "../db/plans.ts";
import { enqueue } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { CHUNK_SPAN_MS } from "./chunks.ts";
import { type Labels, valueBegin } from "./labels.ts";

const kind = "metrics.retention";
const hourMs = 3_600_000;
/** How long a series stays marked before it goes: no process trusts its number for as long. */
const markMs = hourMs;
/** Series that one run looks at. */
const portion = 1000;

/** The partitions of chunks: 30 days each, as far back and ahead as points are taken. */
export function chunkPartitions(
  config: Pick<Config, "metricRetentionSec" | "modelAgeSecMax" | "aheadSecMax">,
): PartitionedTable {
  const keepMs = config.metricRetentionSec * 1000;
  return {
    table: "metric_chunks",
    widthMs: 30 * CHUNK_SPAN_MS,
    backMs: Math.min(config.modelAgeSecMax * 1000, keepMs),
    aheadMs: config.aheadSecMax * 1000 + 2 * CHUNK_SPAN_MS,
    keepMs,
  };
}

/** Begins to look after a tenant's series, in the transaction that makes the first one. */
export async function beginRetention(tx: Db, tenantId: string, nowMs: number): Promise<void> {
  await enqueue(tx, { tenantId, kind }, [{ id: "series", payload: { after: 0 }, dueMs: nowMs + hourMs }], nowMs);
}

/**
 * Removes series without points: one found so is marked, and goes if it is still marked and still so an hour later. A
 * process that stores its points asks for the series again within that hour, which clears the mark. Returns the last one looked at; undefined:
 * there are no more.
 */
export async function ageSeries(
  tx: Db,
  tenantId: string,
  after: number,
  nowMs: number,
  retentionSec: number,
): Promise<number | undefined> {
  const [looked] = await tx<{ last: number | null; count: number }[]>`
    select max(number)::float8 as last, count(*)::float8 as count from (
      select number from series where tenant_id = ${tenantId} and number > ${BigInt(after)} order by number limit ${portion}
    ) as portion`;
  if (looked === undefined || looked.last === null) return undefined;
  const bounds = tx`number > ${BigInt(after)} and number <= ${BigInt(looked.last)}`;
  // By the primary keys: a query with an offset is run for each series, and becomes no join. The head holds points of the last
  // hours, so that a series with a chunk or a new one is not looked for in it.
  const keptMs = nowMs - retentionSec * 1000;
  const unused = await tx<{ number: bigint; marked: bigint | null }[]>`
    select number, unused_ms as marked from series s
    where tenant_id = ${tenantId} and ${bounds} and created_ms < ${BigInt(nowMs - 2 * hourMs)}
      and not exists (
        select from metric_chunks c where c.tenant_id = ${tenantId} and c.series = s.number
          and c.last_ms >= ${BigInt(keptMs)} and c.first_ms > ${BigInt(keptMs - CHUNK_SPAN_MS)} offset 0
      )
      and not exists (
        select from metric_heads h where h.tenant_id = ${tenantId} and h.bucket = s.number % 16
          and h.first_series <= s.number and h.last_series >= s.number offset 0
      )
    order by number`;
  const due = unused.filter(({ marked }) => marked !== null && Number(marked) <= nowMs - markMs);
  const fresh = unused.filter(({ marked }) => marked === null);
  if (fresh.length > 0) {
    // By the key: they are locked where they are there, so that none is made.
    await tx`
      insert into series as stored (tenant_id, number, entity_id, metric, units, description, created_ms, unused_ms)
      select s.tenant_id, s.number, s.entity_id, s.metric, s.units, s.description, s.created_ms, ${BigInt(nowMs)}::bigint
      from unnest(${bigintArray(fresh.map(({ number }) => number))}::bigint[]) as fresh (number)
      cross join lateral (
        select tenant_id, number, entity_id, metric, units, description, created_ms from series
        where tenant_id = ${tenantId} and number >= fresh.number and number <= fresh.number
        order by number for no key update offset 0
      ) as s
      on conflict (tenant_id, number) do update set unused_ms = excluded.unused_ms`;
  }
  if (due.length > 0)
    await removeSeries(
      tx,
      tenantId,
      due.map(({ number }) => number),
      nowMs,
    );
  return looked.count < portion ? undefined : looked.last;
}

/** The numbers are those of one portion, in their order. */
async function removeSeries(tx: Db, tenantId: string, numbers: readonly bigint[], nowMs: number): Promise<void> {
  const [first, last] = [numbers[0] as bigint, numbers.at(-1) as bigint];
  const gone = await tx<{ number: bigint; entityId: Buffer; labels: Labels | null }[]>`
    delete from series
    where tenant_id = ${tenantId} and number >= ${first} and number <= ${last}
      and ${JSON.stringify(numbers.map(String))}::jsonb ? number::text and unused_ms <= ${BigInt(nowMs - markMs)}
    returning number, entity_id as "entityId", labels`;
  if (gone.length === 0) return;
  await tx`update series_counts set count = count - ${gone.length}::int4 where tenant_id = ${tenantId}`;
  const labelled = gone.flatMap(({ labels, ...each }) =>
    Object.entries(labels ?? {}).map(([key, value]) => ({ ...each, key, begin: valueBegin(value) })),
  );
  if (labelled.length > 0) await removeLabels(tx, tenantId, labelled);
}

interface SeriesLabel {
  number: bigint;
  entityId: Buffer;
  key: string;
  begin: string;
}

/** By the key: a label of one of these series is among them, so that every combination that is there goes. */
async function removeLabels(tx: Db, tenantId: string, labels: readonly SeriesLabel[]): Promise<void> {
  const entities = new Map(labels.map(({ entityId }) => [entityId.toString("latin1"), entityId]));
  await tx`
    delete from series_labels
    where tenant_id = ${tenantId} and entity_id = any(${byteaArray([...entities.values()])}::bytea[])
      and key = any(${textArray([...new Set(labels.map(({ key }) => key))])}::text[])
      and value_begin = any(${textArray([...new Set(labels.map(({ begin }) => begin))])}::text[])
      and series = any(${bigintArray([...new Set(labels.map(({ number }) => number))])}::bigint[])`;
}

/** Which of these entities have series, by series_identity. */
export async function entitiesWithSeries(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
  planWithoutValues(tx);
  const rows = await tx<{ id: Buffer }[]>`
    select id from unnest(${byteaArray(ids)}::bytea[]) as asked (id)
    where exists (
      select from series where tenant_id = ${tenantId} and entity_id >= asked.id and entity_id <= asked.id
      order by entity_id offset 0
    )`;
  return rows.map(({ id }) => id);
}

/** The job that looks after series, for the worker. */
export function retentionKind(retentionSec: number): JobKind {
  return {
    name: kind,
    sizeMax: 1,
    alone: true,
    async run(tx, tenantId, jobs, nowMs) {
      const again = [];
      for (const { id, payload } of jobs) {
        const { after } = payload as { after: number };
        const last = await ageSeries(tx, tenantId, after, nowMs, retentionSec);
        again.push({ id, payload: { after: last ?? 0 }, dueMs: last === undefined ? nowMs + hourMs : nowMs });
      }
      return again;
    },
  };
}
