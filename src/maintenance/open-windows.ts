import { and, eq } from "drizzle-orm";
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
  // One id at a time: of several, what PostgreSQL reads depends on what it knows of the windows.
  const found = await Promise.all(
    entered.map(({ id }) =>
      orm(db)
        .select({ name: windows.name, untilMs: windows.runEndMs })
        .from(windows)
        .where(and(eq(windows.tenantId, tenantId), eq(windows.id, id))),
    ),
  );
  return found.flat().sort((one, other) => (one.name < other.name ? -1 : 1));
}
