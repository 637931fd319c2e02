import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { clientOf } from "./calls.ts";
import { polled } from "./polled.ts";

const running = create(ClauseSchema, {
  filter: {
    field: "runState",
    operation: Operation.OP_EQUALS,
    value: { kind: { case: "stringValue", value: "IN_PROGRESS" } },
  },
});

/** How many maintenance windows run. */
export const {
  value: runningWindows,
  ask: askRunningWindows,
  start: startRunningWindows,
} = polled(
  async () => {
    // The first screen does not wait for what the service is made of.
    const { MaintenanceWindowService } = await import("#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts");
    const searchInput = { query: { clause: running }, pageInput: { limit: 1 } };
    const { pageInfo } = await clientOf(MaintenanceWindowService).searchMaintenanceWindows({ searchInput });
    return pageInfo?.totalCount ?? 0n;
  },
  () => true,
);
