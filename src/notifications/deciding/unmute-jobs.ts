import type { Db } from "../../db/connect.ts";
import { enqueue } from "../../jobs/queue.ts";
import { keyText } from "./match-store.ts";

/** The jobs that look at what was kept silent, by the entities that are perhaps no longer in maintenance. */
export const unmuteKind = "notifications.released";
/** After this time a transaction that kept silent has ended, and a job sees what it has noted. */
const settledMs = 1000;

/** The payload of such a job: ids in base64, and when they left maintenance. */
export interface Released {
  entityIds: string[];
  /** Absent in jobs of 0.1.0. */
  atMs?: number;
}

/** Leaves a job that looks at what is kept silent about these entities. */
export async function unmuteReleased(
  tx: Db,
  tenantId: string,
  entityIds: readonly Buffer[],
  dueMs: number,
): Promise<void> {
  const payload: Released = { entityIds: entityIds.map((id) => id.toString("base64url")), atMs: dueMs };
  await enqueue(tx, { tenantId, kind: unmuteKind }, [{ payload, dueMs }], dueMs);
}

/**
 * Leaves a look at what a transaction has just begun to keep silent: a window that ends before this commits does not know
 * of it.
 */
export async function lookAtSilenced(
  tx: Db,
  tenantId: string,
  entityIds: readonly Buffer[],
  nowMs: number,
): Promise<void> {
  const ids = new Map(entityIds.map((id) => [keyText(id), id]));
  await unmuteReleased(tx, tenantId, [...ids.values()], nowMs + settledMs);
}
