import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { ActiveCriteria, EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { severityOf } from "../events/words.tsx";
import type { PlotBand, PlotMark } from "../ui/plot.tsx";
import { runsPlanned, windowsHolding } from "../windows/holding.ts";

const events = clientOf(EventQueryService);
const windows = clientOf(MaintenanceWindowService);
const marksMax = 50;
const bandsMax = 50;

/** An occurrence that began in the time of the plots. */
interface Began extends PlotMark {
  readonly id: string;
}

/** A run of a window over the entity. */
interface Held extends PlotBand {
  readonly id: string;
  /** True for a run that is over, drawn as planned. */
  readonly over: boolean;
}

/** What happened to the entity in the time of the plots. */
export interface Happened {
  /** The worst ones, the latest first. */
  readonly marks: readonly Began[];
  readonly bands: readonly Held[];
  /** Whether more occurrences are active in that time. */
  readonly more: boolean;
}

export const nothing: Happened = { marks: [], bands: [], more: false };

/** Reads the occurrences of an entity that began in a range, and the windows that hold it or did. */
export async function readHappened(id: string, start: number, end: number, signal: AbortSignal): Promise<Happened> {
  const [began, held, planned] = await Promise.all([
    readBegan(id, start, end, signal),
    readHeld(id, end, signal),
    runsPlanned(id, start, end, signal),
  ]);
  const over = planned.map(({ name, ...run }) => ({ ...run, text: `Planned maintenance: ${name}`, over: true }));
  return { ...began, bands: [...held, ...over.sort((a, b) => b.end - a.end)].slice(0, bandsMax) };
}

async function readBegan(id: string, start: number, end: number, signal: AbortSignal) {
  const value = { kind: { case: "stringValue" as const, value: id } };
  const descending = (field: string) => ({ byField: { field, order: SortOrder.DESC } });
  const { results, pageInfo } = await events.searchEvents(
    {
      query: {
        clause: create(ClauseSchema, { filter: { field: "entity", operation: Operation.OP_EQUALS, value } }),
        timeRange: { start: BigInt(start), end: BigInt(end) },
        activeCriteria: ActiveCriteria.BY_OVERLAP,
        sortBy: [descending("severity"), descending("startTime")],
        pageInput: { limit: marksMax },
        fields: ["name", "severity", "startTime"].map((field) => ({ field })),
      },
    },
    { signal },
  );
  const marks = results
    .flatMap(({ name = "", occurrences }) =>
      occurrences.map(({ id: own, severity, startTime = 0n }) => ({
        id: own,
        at: Number(startTime),
        text: name || "without a name",
        tone: severityOf(severity).tone,
      })),
    )
    .filter(({ at }) => start <= at && at < end);
  return {
    marks: marks.slice(0, marksMax).sort((a, b) => b.at - a.at),
    more: marks.length > marksMax || (pageInfo?.hasNext ?? false),
  };
}

/** Reads the runs in progress. */
async function readHeld(id: string, end: number, signal: AbortSignal): Promise<Held[]> {
  const holding = await windowsHolding(id, signal);
  if (holding.length === 0) return [];
  const nowMs = Date.now();
  const timeRange = { start: BigInt(nowMs), end: BigInt(Math.max(end, nowMs) + 1) };
  const { windows: found } = await windows.listMaintenanceRuns(
    { ids: holding.map((each) => each.id), timeRange, runsMax: 10 },
    { signal },
  );
  const names = new Map(holding.map((each) => [each.id, each.name]));
  return found.flatMap(({ id: window, runs }) =>
    runs.map((run) => ({
      id: window,
      text: `Maintenance: ${names.get(window)}`,
      start: Number(run.start),
      end: run.end === undefined ? Number.MAX_SAFE_INTEGER : Number(run.end),
      over: false,
    })),
  );
}
