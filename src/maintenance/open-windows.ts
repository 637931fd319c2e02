import { and, eq, inArray } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { maintenanceMembers as members, maintenanceWindows as windows } from "./tables.ts";

/** A window that an entity is in, and when its run ends, ms; null: by hand. */
export interface OpenWindow {
  readonly name: string;
  readonly untilMs: bigint | null;
}

/** The open windows that an entity is in. */
export async function openWindows(db: Db, tenantId: string, entityId: Buffer): Promise<OpenWindow[]> {
  const entered = await orm(db)
    .select({ id: members.windowId })
    .from(members)
    .where(and(eq(members.tenantId, tenantId), eq(members.entityId, entityId)));
  if (entered.length === 0) return [];
  const ids = entered.map(({ id }) => id);
  return await orm(db)
    .select({ name: windows.name, untilMs: windows.runEndMs })
    .from(windows)
    .where(and(eq(windows.tenantId, tenantId), inArray(windows.id, ids)))
    .orderBy(windows.name);
}
