import type { Message } from "@bufbuild/protobuf";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Db } from "../../db/connect.ts";
import type { SourceName } from "../rules/sources/source.ts";
import type { RulePart } from "../silences/rules-version.ts";
import type { ReadCurrentStates } from "./current-state.ts";
import { metricThresholds } from "./sources/metric-threshold.ts";
import type { DataSource, RunningSource, SourceOptions } from "./sources/source.ts";
import { staleData } from "./sources/stale-data.ts";

type MessageOf<S extends SourceName> = Extract<TriggerType["source"], { case: S }>["value"];

const sources: { readonly [S in SourceName]?: DataSource<MessageOf<S>> } = {
  metricThreshold: metricThresholds,
  staleData,
};

/** All sources, under the one type that they share. */
const all = Object.values(sources) as readonly DataSource<Message>[];

/** Reads the current state of the open matches of all sources but events. */
export const readCurrentStates: ReadCurrentStates = async (...of) => {
  const states: Awaited<ReturnType<ReadCurrentStates>> = new Map();
  for (const { currentStates } of all)
    for (const [pair, state] of (await currentStates?.(...of)) ?? []) states.set(pair, state);
  return states;
};

/** In the transaction that changes rules or triggers. */
export async function onRulesChange(tx: Db, tenantId: string, part: RulePart): Promise<void> {
  for (const source of all) await source.onRulesChange?.(tx, tenantId, part);
}

/** In the transaction that changes what a trigger looks at. */
export async function onTriggerChange(
  tx: Db,
  tenantId: string,
  name: string,
  { before, after }: { before: TriggerType; after: TriggerType },
): Promise<void> {
  const [old, now] = [before.source, after.source];
  if (old.case === undefined || old.case !== now.case) return;
  const source = sources[old.case] as DataSource<Message> | undefined;
  await source?.onChange?.(tx, tenantId, name, old.value, now.value);
}

/** Reads, per trigger name, why its data cannot be queried. */
export async function triggerTroubles(db: Db, tenantId: string): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all(
    all.map(async (source) => Object.entries((await source.troubles?.(db, tenantId)) ?? {})),
  );
  return new Map(found.flat());
}

/** Starts the sources of this process, as one. */
export function startSources(options: SourceOptions): Required<RunningSource> {
  const running = all.flatMap((source) => source.start?.(options) ?? []);
  return {
    kinds: running.flatMap(({ kinds = [] }) => kinds),
    async onPoints(...of) {
      for (const source of running) await source.onPoints?.(...of);
    },
    onEvents(...of) {
      for (const source of running) source.onEvents?.(...of);
    },
    async flush(nowMs) {
      await Promise.all(running.map((source) => source.flush?.(nowMs)));
    },
    async stop() {
      await Promise.all(running.map((source) => source.stop?.()));
    },
  };
}
