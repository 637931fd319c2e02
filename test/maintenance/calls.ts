import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { after, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";

/** To be started by hand, so that nothing happens while the test looks. */
const specification = (mark: string) => ({
  name: mark,
  target: { case: "withIds", value: { ids: [mark] } },
  runMode: 1,
  schedule: { start: 1_767_225_600_000n, duration: 3_600_000n },
  maintenanceState: 300,
});

async function made({ client, mark }: World): Promise<string> {
  const { id } = await client(MaintenanceWindowService).createMaintenanceWindow({
    specification: specification(mark) as never,
  });
  return id;
}

/** Waits until the job that follows a start has done its work: it would change rows while the test looks. */
async function settled({ db, tenant }: World): Promise<void> {
  for (let i = 0; i < 100; i++) {
    const due = await db`
      select from jobs where tenant_id = ${tenant.id} and kind = 'maintenance.members'`;
    if (due.count === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const byName = (mark: string) => ({
  filter: { field: "name", operation: 1, value: { kind: { case: "stringValue", value: mark } } },
});

export const calls: Calls = {
  "MaintenanceWindowService/CreateMaintenanceWindow": hisOwn(({ mark }) => ({ specification: specification(mark) })),
  "MaintenanceWindowService/ReplaceMaintenanceWindow": notFound(
    after(made, (id, world) => ({ id, specification: specification(world.mark) })),
  ),
  "MaintenanceWindowService/ListMaintenanceWindows": nothing(after(made)),
  "MaintenanceWindowService/SearchMaintenanceWindows": nothing(
    after(made, (_, world) => ({ searchInput: { query: { clause: byName(world.mark) } } })),
  ),
  "MaintenanceWindowService/DeleteMaintenanceWindows": notFound(async (world) => ({ ids: [await made(world)] })),
  "MaintenanceWindowService/StartMaintenanceWindow": notFound(after(made, (id) => ({ id }))),
  "MaintenanceWindowService/StopMaintenanceWindow": notFound(async (world) => {
    const id = await made(world);
    await world.client(MaintenanceWindowService).startMaintenanceWindow({ id });
    await settled(world);
    return { id };
  }),
  "MaintenanceWindowService/ListMaintenanceRuns": {
    ...nothing(async (world) => ({ ids: [await made(world)] })),
    unmarked: true,
  },
  "MaintenanceWindowService/PreviewMaintenanceWindow": notFound(after(made, (id) => ({ id }))),
};
