import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { clientOf } from "../data/calls.ts";

const entities = clientOf(EntityService);
const windows = clientOf(MaintenanceWindowService);
const windowsMax = 50;

/** The windows in progress that hold an entity: those whose own query finds it. */
export async function windowsHolding(entityId: string, signal: AbortSignal): Promise<MaintenanceWindow[]> {
  const running = create(ClauseSchema, {
    filter: {
      field: "runState",
      operation: Operation.OP_EQUALS,
      value: { kind: { case: "stringValue", value: "IN_PROGRESS" } },
    },
  });
  const searchInput = { query: { clause: running }, pageInput: { limit: windowsMax } };
  const { maintWindows } = await windows.searchMaintenanceWindows({ searchInput }, { signal });
  const holds = await Promise.all(
    maintWindows.map(async (window) => {
      const clause = window.target.case === "query" ? window.target.value.clause : undefined;
      if (clause === undefined) return [];
      const both = create(ClauseSchema, {
        allOf: { clauses: [clause, create(ClauseSchema, { withIds: { ids: [entityId] } })] },
      });
      const found = await entities.searchEntities({ searchInput: { query: { clause: both } } }, { signal });
      return found.entities?.entities.length ? [window] : [];
    }),
  );
  return holds.flat();
}
