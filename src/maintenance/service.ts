import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import {
  CreateMaintenanceWindowResponseSchema,
  DeleteMaintenanceWindowsResponseSchema,
  ListMaintenanceRunsResponseSchema,
  ListMaintenanceWindowsResponseSchema,
  type MaintenanceWindowService,
  PreviewMaintenanceWindowResponseSchema,
  ReplaceMaintenanceWindowResponseSchema,
  SearchMaintenanceWindowsResponseSchema,
  StartMaintenanceWindowResponseSchema,
  StopMaintenanceWindowResponseSchema,
} from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { checkQuota, type Kept, type QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import type { WindowHooks } from "./hooks.ts";
import { listWindows, searchWindows } from "./list.ts";
import { listRuns, previewWindow } from "./preview.ts";
import {
  createWindow,
  deleteWindows,
  replaceWindow,
  startWindow,
  stopWindow,
  type WindowWrite,
  type Written,
} from "./windows.ts";

/** What the service needs beside the database. */
export interface Maintenance {
  nowMs(): number;
  /** Notified after a commit when something is due; absent: at once. */
  wake(dueMs?: number): void;
  hooks: WindowHooks;
}

const kept: Kept = { things: "maintenance windows", table: "maintenance_windows", key: "id", columns: ["name"] };

/** Maintenance windows. */
export function maintenanceWindowService(
  db: Db,
  bounds: QuotaBounds,
  { nowMs, wake, hooks }: Maintenance,
): Partial<ServiceImpl<typeof MaintenanceWindowService>> {
  async function write(
    context: HandlerContext,
    name: (written: Written) => string,
    work: (tx: Db, writing: WindowWrite) => Promise<Written>,
  ): Promise<Written> {
    const { clientName } = principalOf(context);
    const written = await transaction(db, async (tx) => {
      const done = await work(tx, { tenant: tenantOf(context), clientName, nowMs: nowMs(), hooks });
      await audited(tx, context, name(done));
      return done;
    });
    wake();
    if (written.dueMs !== undefined) wake(written.dueMs);
    return written;
  }
  const byId = ({ id }: Written) => id;

  return {
    ...readingCalls(db, nowMs),

    async createMaintenanceWindow({ specification = create(MaintenanceWindowSchema) }, context) {
      const { id } = await write(context, byId, async (tx, writing) => {
        const written = await createWindow(tx, specification, writing);
        await checkQuota(tx, writing.tenant.id, kept, written.id, bounds);
        return written;
      });
      return create(CreateMaintenanceWindowResponseSchema, { id });
    },

    async replaceMaintenanceWindow({ id, specification = create(MaintenanceWindowSchema) }, context) {
      await write(context, byId, (tx, writing) => replaceWindow(tx, id, specification, writing));
      return create(ReplaceMaintenanceWindowResponseSchema);
    },

    async deleteMaintenanceWindows({ ids }, context) {
      const all = ids.join(",");
      await write(
        context,
        () => all,
        async (tx, writing) => {
          await deleteWindows(tx, ids, writing);
          return { id: all, dueMs: undefined };
        },
      );
      return create(DeleteMaintenanceWindowsResponseSchema);
    },

    async startMaintenanceWindow({ id }, context) {
      await write(context, byId, (tx, writing) => startWindow(tx, id, writing));
      return create(StartMaintenanceWindowResponseSchema);
    },

    async stopMaintenanceWindow({ id }, context) {
      await write(context, byId, (tx, writing) => stopWindow(tx, id, writing));
      return create(StopMaintenanceWindowResponseSchema);
    },
  };
}

function tenantOf(context: HandlerContext) {
  const { tenantId, tenantName } = principalOf(context);
  return { id: tenantId, name: tenantName };
}

/** The calls that change nothing. */
function readingCalls(db: Db, nowMs: () => number) {
  const viewing = (context: HandlerContext) => ({ tenant: tenantOf(context), nowMs: nowMs(), signal: context.signal });
  return {
    async listMaintenanceWindows(request, context) {
      return create(ListMaintenanceWindowsResponseSchema, await listWindows(db, tenantOf(context), request));
    },

    async searchMaintenanceWindows(request, context) {
      return create(SearchMaintenanceWindowsResponseSchema, await searchWindows(db, tenantOf(context), request));
    },

    async listMaintenanceRuns(request, context) {
      const windows = await listRuns(db, request, viewing(context));
      return create(ListMaintenanceRunsResponseSchema, { windows });
    },

    async previewMaintenanceWindow(request, context) {
      const preview = await previewWindow(db, request, viewing(context));
      return create(PreviewMaintenanceWindowResponseSchema, preview);
    },
  } satisfies Partial<ServiceImpl<typeof MaintenanceWindowService>>;
}
