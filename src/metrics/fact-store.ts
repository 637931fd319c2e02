import { compareCodePoints } from "../clause/code-point-order.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { transaction } from "../db/transaction.ts";
import type { Notes } from "./notes.ts";

/** What was said of a metric, and when. */
export interface StoredFacts extends Notes {
  metric: string;
  saidMs: number;
}

/** What remote write says of metrics, shared by all processes. */
export interface FactStore {
  /** Reads what processes have stored since `sinceMs`, a page at a time. */
  read(tenantId: string, sinceMs: number): AsyncIterable<StoredFacts[]>;
  /** Stores what was said now; another text that was said within the hour stays. May be repeated. */
  store(tenantId: string, said: ReadonlyMap<string, Readonly<Notes>>, nowMs: number): Promise<void>;
}

/** Of two texts that targets say in turn, one stays for as long as it is said: else every minute would write both. */
export const keptMs = 3_600_000;
/** Facts that are said no more. */
const forgottenMs = 7 * 86_400_000;
const metricsMax = 20_000;
const pageRows = 1000;

/** Makes the store of a database. */
export const factStore = (db: Db): FactStore => ({
  read: (tenantId, sinceMs) => readFacts(db, tenantId, sinceMs),
  store: (tenantId, said, nowMs) => storeFacts(db, tenantId, said, nowMs),
});

async function* readFacts(db: Db, tenantId: string, sinceMs: number): AsyncGenerator<StoredFacts[]> {
  for (let after = ""; ; ) {
    const rows = await db<(Omit<StoredFacts, "saidMs"> & { said_ms: bigint })[]>`
      select metric, units, description, instrument, said_ms from metric_facts
      where tenant_id = ${tenantId} and metric > ${after} and said_ms >= ${BigInt(sinceMs)}
      order by metric limit ${pageRows}`;
    yield rows.map(({ said_ms, ...facts }) => ({ ...facts, saidMs: Number(said_ms) }));
    if (rows.length < pageRows) return;
    after = rows.at(-1)?.metric ?? after;
  }
}

async function storeFacts(
  db: Db,
  tenantId: string,
  said: ReadonlyMap<string, Readonly<Notes>>,
  nowMs: number,
): Promise<void> {
  const sorted = [...said].sort(([a], [b]) => compareCodePoints(a, b));
  await transaction(db, async (tx) => {
    await tx`delete from metric_facts where tenant_id = ${tenantId} and said_ms < ${BigInt(nowMs - forgottenMs)}`;
    for (let from = 0; from < sorted.length; from += pageRows)
      await storePage(tx, tenantId, sorted.slice(from, from + pageRows), nowMs);
    // The last names go: those of a sender that makes up names come at any place.
    await tx`
      delete from metric_facts where tenant_id = ${tenantId} and metric in (
        select metric from metric_facts where tenant_id = ${tenantId} order by metric offset ${metricsMax}
      )`;
  });
}

async function storePage(
  tx: Db,
  tenantId: string,
  page: readonly (readonly [string, Readonly<Notes>])[],
  nowMs: number,
) {
  const column = (of: (notes: Readonly<Notes>) => string) => textArray(page.map(([, notes]) => of(notes)));
  await tx`
    insert into metric_facts as f (tenant_id, metric, units, description, instrument, said_ms)
    select home.tenant_id, metric, units, description, instrument, ${BigInt(nowMs)}
    from ${home(tx, tenantId)}, unnest(${textArray(page.map(([metric]) => metric))}::text[], ${column(({ units }) => units)}::text[],
      ${column(({ description }) => description)}::text[], ${column(({ instrument }) => instrument)}::text[]
    ) as said (metric, units, description, instrument)
    order by metric collate "C"
    on conflict (tenant_id, metric) do update
      set units = excluded.units, description = excluded.description, instrument = excluded.instrument, said_ms = excluded.said_ms
      where f.said_ms < ${BigInt(nowMs - keptMs)} or (f.units = excluded.units and f.description = excluded.description
        and f.instrument = excluded.instrument and f.said_ms < excluded.said_ms)`;
}
