import type { Db } from "../db/connect.ts";
import { announce, type Lane } from "./queue.ts";

/**
 * Sees to it that a job of this id runs by `dueMs`, in the caller's transaction: one that is there keeps its payload. Where
 * one is due by then its row is only locked as sharers do, so that callers do not wait for each other, and a run that holds
 * `lockJob` is waited for.
 */
export async function runBy(tx: Db, { tenantId, kind }: Lane, id: string, dueMs: number, nowMs: number): Promise<void> {
  const due = BigInt(dueMs);
  const there = await tx`
    select from jobs
    where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} and due_ms <= ${due} for key share`;
  if (there.count > 0) return;
  await tx`
    insert into jobs as stored
      (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
    values (${tenantId}, ${kind}, ${id}, '{}', 1, ${due}, ${BigInt(nowMs)}, 0, 0, 0)
    on conflict (tenant_id, kind, id) do update set due_ms = least(stored.due_ms, excluded.due_ms)`;
  await announce(tx, { tenantId, kind }, due);
}

/** Locks a job until the transaction ends: what `runBy` has seen before is committed, and it waits for what follows. */
export async function lockJob(tx: Db, { tenantId, kind }: Lane, id: string): Promise<void> {
  await tx`select from jobs where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} for update`;
}
