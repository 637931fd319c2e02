import { uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { announce, enqueue } from "../../jobs/queue.ts";
import { flushJob, groupsKind } from "../subject/group-jobs.ts";

const deliveriesLane = "deliveries";

/** Has all that silences hold judged again now, and announces it once, after all rows. By the key: what waits is little. */
export async function releaseHeld(tx: Db, tenantId: string, ids: readonly string[], nowMs: number): Promise<void> {
  const moved = await tx`
    update due_deliveries set due_ms = ${BigInt(nowMs)}
    where tenant_id = ${tenantId} and silence_id = any(${uuidArray(ids)}::uuid[]) and due_ms > ${BigInt(nowMs)}`;
  if (moved.count > 0) await announce(tx, { tenantId, kind: deliveriesLane }, BigInt(nowMs));
  await hastenHeld(tx, tenantId, nowMs);
}

/** Has groups in which something is held back, and of which nobody has heard, flushed now: a silence or a window has ended. */
export async function hastenHeld(tx: Db, tenantId: string, nowMs: number): Promise<void> {
  const rows = await tx<{ ruleId: string }[]>`
    update alert_groups set due_ms = ${BigInt(nowMs)}
    where tenant_id = ${tenantId} and held and flushed_ms is null and due_ms > ${BigInt(nowMs)} returning rule_id as "ruleId"`;
  const jobs = [...new Set(rows.map(({ ruleId }) => ruleId))].map((ruleId) => flushJob(ruleId, nowMs));
  await enqueue(tx, { tenantId, kind: groupsKind }, jobs, nowMs);
}
