import { create } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { clientOf } from "../data/calls.ts";

const entities = clientOf(EntityService);
const windows = clientOf(MaintenanceWindowService);
const windowsMax = 500;
/** Windows whose entities are searched, one search each, and how many of these searches run at once. */
const searchedMax = 100;
const atOnce = 6;
/** Longer runs are not found once they are over. */
const longestMs = 31 * 86_400_000;

/** Finds the windows in progress whose query matches the entity. */
export const windowsHolding = (entityId: string, signal: AbortSignal) =>
  windowsOver(entityId, [compared("runState", Operation.OP_EQUALS, "IN_PROGRESS")], signal, () => true);

/** A single run that is over, in ms since the epoch. */
interface PlannedRun {
  readonly id: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Finds completed one-time runs over an entity that reach into a range, as planned: an early end by hand and past runs of recurring
 * windows are not known.
 */
export async function runsPlanned(
  entityId: string,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<PlannedRun[]> {
  const runOf = ({ id, name, schedule, createTime }: MaintenanceWindow): PlannedRun[] => {
    if (schedule === undefined || (schedule.recurrence?.type ?? 0) !== 0) return [];
    const over = Number(schedule.start + schedule.duration);
    // It cannot have begun before it was made.
    const began = Math.max(Number(schedule.start), Number(createTime));
    return over <= start || over <= began ? [] : [{ id, name, start: began, end: over }];
  };
  const found = await windowsOver(
    entityId,
    [
      compared("runState", Operation.OP_EQUALS, "COMPLETED"),
      compared("runMode", Operation.OP_EQUALS, "AUTO"),
      compared("status", Operation.OP_EQUALS, "ENABLED"),
      compared("schedule.start", Operation.OP_GREATER, start - longestMs),
      compared("schedule.start", Operation.OP_LESS, end),
    ],
    signal,
    (window) => runOf(window).length > 0,
  );
  return found.flatMap(runOf);
}

/** Finds the windows that meet these clauses, are wanted, and whose own query matches the entity; of the first 100 by name. */
async function windowsOver(
  entityId: string,
  clauses: Clause[],
  signal: AbortSignal,
  wanted: (window: MaintenanceWindow) => boolean,
): Promise<MaintenanceWindow[]> {
  const clause = create(ClauseSchema, { allOf: { clauses } });
  const searchInput = { query: { clause }, pageInput: { limit: windowsMax } };
  const { maintWindows } = await windows.searchMaintenanceWindows({ searchInput }, { signal });
  const searched = maintWindows.filter(wanted).slice(0, searchedMax);
  const holding: MaintenanceWindow[] = [];
  for (let from = 0; from < searched.length; from += atOnce) {
    const part = searched.slice(from, from + atOnce);
    const holds = await Promise.all(part.map((window) => matchesEntity(window, entityId, signal)));
    holding.push(...part.filter((_, at) => holds[at]));
  }
  return holding;
}

/** Tells whether a window's own query matches the entity. */
async function matchesEntity({ target }: MaintenanceWindow, entityId: string, signal: AbortSignal): Promise<boolean> {
  const own = target.case === "query" ? target.value.clause : undefined;
  if (own === undefined) return false;
  const clause = create(ClauseSchema, {
    allOf: { clauses: [own, create(ClauseSchema, { withIds: { ids: [entityId] } })] },
  });
  const found = await entities.searchEntities({ searchInput: { query: { clause } } }, { signal });
  return (found.entities?.entities.length ?? 0) > 0;
}

function compared(field: string, operation: Operation, value: string | number): Clause {
  const kind =
    typeof value === "number" ? { case: "numberValue" as const, value } : { case: "stringValue" as const, value };
  return create(ClauseSchema, { filter: { field, operation, value: { kind } } });
}
