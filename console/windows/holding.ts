import { create } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { clientOf } from "../data/calls.ts";

const entities = clientOf(EntityService);
const windows = clientOf(MaintenanceWindowService);
const windowsMax = 50;
/** A single run that is longer is not looked for once it is over. */
const longestMs = 31 * 86_400_000;

/** The windows in progress that hold an entity: those whose own query finds it. */
export const windowsHolding = (entityId: string, signal: AbortSignal) =>
  windowsOver(entityId, [compared("runState", Operation.OP_EQUALS, "IN_PROGRESS")], signal);

/** A single run that is over, in ms since the epoch. */
interface PlannedRun {
  readonly id: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/**
 * The single runs over an entity that were over by now and reach into a range, as they were planned: which of them was ended by hand
 * before its time is not known, nor when windows ran that come again.
 */
export async function runsPlanned(
  entityId: string,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<PlannedRun[]> {
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
  );
  return found.flatMap(({ id, name, schedule, createTime }) => {
    if (schedule === undefined || (schedule.recurrence?.type ?? 0) !== 0) return [];
    const over = Number(schedule.start + schedule.duration);
    // It cannot have begun before it was made.
    const began = Math.max(Number(schedule.start), Number(createTime));
    return over <= start || over <= began ? [] : [{ id, name, start: began, end: over }];
  });
}

/** The windows that meet these clauses and whose own query finds an entity. */
async function windowsOver(entityId: string, clauses: Clause[], signal: AbortSignal): Promise<MaintenanceWindow[]> {
  const clause = create(ClauseSchema, { allOf: { clauses } });
  const searchInput = { query: { clause }, pageInput: { limit: windowsMax } };
  const { maintWindows } = await windows.searchMaintenanceWindows({ searchInput }, { signal });
  const holds = await Promise.all(
    maintWindows.map(async (window) => {
      const own = window.target.case === "query" ? window.target.value.clause : undefined;
      if (own === undefined) return [];
      const both = create(ClauseSchema, {
        allOf: { clauses: [own, create(ClauseSchema, { withIds: { ids: [entityId] } })] },
      });
      const found = await entities.searchEntities({ searchInput: { query: { clause: both } } }, { signal });
      return found.entities?.entities.length ? [window] : [];
    }),
  );
  return holds.flat();
}

function compared(field: string, operation: Operation, value: string | number): Clause {
  const kind =
    typeof value === "number" ? { case: "numberValue" as const, value } : { case: "stringValue" as const, value };
  return create(ClauseSchema, { filter: { field, operation, value: { kind } } });
}
