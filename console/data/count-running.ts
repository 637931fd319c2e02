import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { clientOf } from "./calls.ts";

const windows = clientOf(MaintenanceWindowService);

const running = create(ClauseSchema, {
  filter: {
    field: "runState",
    operation: Operation.OP_EQUALS,
    value: { kind: { case: "stringValue", value: "IN_PROGRESS" } },
  },
});

/** Counts the maintenance windows that run. */
export async function countRunning(): Promise<bigint> {
  const searchInput = { query: { clause: running }, pageInput: { limit: 1 } };
  const { pageInfo } = await windows.searchMaintenanceWindows({ searchInput });
  return pageInfo?.totalCount ?? 0n;
}
