import type { Config } from "../config/settings.ts";
import type { Sql } from "../db/connect.ts";
import type { EntityBounds } from "../entities/bounds.ts";
import type { EntityCache } from "../entities/entity-cache.ts";
import { liveness } from "../entities/liveness.ts";
import { partitionUpkeep } from "../jobs/partition-upkeep.ts";
import type { JobKind } from "../jobs/worker.ts";
import type { Log } from "../log.ts";
import { mergeCandidates, mergingKind } from "./merge.ts";
import { chunkPartitions, retentionKind } from "./retention.ts";
import { seriesMemory } from "./series-memory.ts";
import type { MetricStore, OnPoints } from "./store.ts";

/** What else a server has to do with points. */
export interface MetricOptions {
  onPoints: OnPoints;
  known: EntityCache;
  bounds: EntityBounds;
  /** How often the liveness of entities is written, ms. */
  livenessMs?: number;
  /** How soon the job that merges is called, ms. */
  hintMs?: number;
}

/** Metrics of this process. */
export interface MetricServices {
  readonly store: MetricStore;
  readonly kinds: JobKind[];
  /** Points that merging has moved since the start, and series that are known in memory. */
  stats(): { mergedPoints: number; knownSeries: number };
  stop(): Promise<void>;
}

/**
 * What stores points, and the background work that goes with it. Partitions for all points that may come are there when it
 * answers. `stop` comes after the last point was stored.
 */
export async function startMetrics(
  sql: Sql,
  config: Pick<Config, "metricRetentionSec" | "modelAgeSecMax" | "aheadSecMax" | "seriesMax">,
  nowMs: () => number,
  log: Log,
  { onPoints, known, bounds, livenessMs = 60_000, hintMs }: MetricOptions,
): Promise<MetricServices> {
  const partitions = await partitionUpkeep(sql, [chunkPartitions(config)], nowMs, log);
  const living = liveness(sql, livenessMs, known);
  const hints = mergeCandidates(sql, nowMs, hintMs);
  const memory = seriesMemory();
  const merging = mergingKind(config.metricRetentionSec);
  return {
    store: {
      memory,
      known,
      seriesMax: config.seriesMax,
      bounds,
      onPoints,
      onData: living.note,
      onStored: hints.note,
    },
    kinds: [merging, retentionKind(config.metricRetentionSec)],
    stats: () => ({ mergedPoints: merging.stats().points, knownSeries: memory.size() }),
    async stop() {
      await living.stop();
      await hints.stop();
      await partitions.stop();
    },
  };
}
