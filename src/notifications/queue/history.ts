import type { Config } from "../../config/settings.ts";
import { uuidArray } from "../../db/batch.ts";
import type { Sql } from "../../db/connect.ts";
import type { PartitionedTable } from "../../db/partitions.ts";
import { transaction } from "../../db/transaction.ts";
import { forgetOldChains } from "../deciding/chain-counts.ts";
import { forgetOldMessages } from "../groups/group-store.ts";
import { forgetOldSilences } from "../silences/silences.ts";
import { deliveryId } from "../subject/delivery-id.ts";
import { forgetOldSummaries, summaryIdOf } from "./summaries.ts";

const dayMs = 24 * 3_600_000;
/** For what was decided within this time there is always a partition. */
export const historyBackMs = 2 * dayMs;

/**
 * The partitions of deliveries that are done: a day each, by when they were decided. They go when the retention is over even
 * of a delivery that was tried again at its end: it may wait once more, and then has tries for half a day.
 */
export function historyPartitions({
  deliveryRetentionSec,
  deliveryWaitSecMax,
}: Pick<Config, "deliveryRetentionSec" | "deliveryWaitSecMax">): PartitionedTable {
  return {
    table: "delivery_history",
    widthMs: dayMs,
    backMs: historyBackMs,
    aheadMs: 2 * dayMs,
    keepMs: (deliveryRetentionSec + deliveryWaitSecMax) * 1000 + 2 * dayMs,
  };
}

const portion = 1000;
/** The shortest time for which deliveries are kept. */
const heldMs = 7 * dayMs;

/**
 * Gives deliveries that a silence has held for a week new ids, whose day the history keeps: by its first id a delivery would find no
 * partition when it is done. The new time is that of the oldest partition there always is, so that what was decided later for the same
 * match still comes after it. Returns whether there may be more. May be repeated.
 */
export async function renewHeld(sql: Sql, tenantId: string, nowMs: number): Promise<boolean> {
  return await transaction(sql, async (tx) => {
    // By the key: an id begins with its time.
    const old = await tx<{ id: string }[]>`
      select id from due_deliveries
      where tenant_id = ${tenantId} and id < ${deliveryId(nowMs - heldMs)} and silence_id is not null
        and due_ms > ${BigInt(nowMs)} and lease_until_ms <= ${BigInt(nowMs)}
      order by id limit ${portion} for update skip locked`;
    const createdMs = nowMs - historyBackMs;
    const ids = Object.fromEntries(old.map(({ id }) => [id, deliveryId(createdMs)]));
    if (old.length > 0)
      await tx`
        update due_deliveries set id = (by_id ->> id::text)::uuid, created_ms = ${BigInt(createdMs)}
        from (select ${JSON.stringify(ids)}::jsonb as by_id) as renewed
        where tenant_id = ${tenantId} and id = any(${uuidArray(old.map(({ id }) => id))}::uuid[])`;
    return old.length === portion;
  });
}

/**
 * Removes what is not needed any more beside the history: counts of more than 24 hours ago, counts of chains that have ended, and, of what
 * was last sent before the time of retention and is over, what destinations keep of subjects and what summaries stood for; messages of
 * groups go with their records. Returns whether there may be more. May be repeated.
 */
export async function deleteOldNotes(
  sql: Sql,
  tenantId: string,
  { nowMs, retentionMs, recordMs }: { nowMs: number; retentionMs: number; recordMs: number },
): Promise<boolean> {
  await sql`delete from delivery_counts where tenant_id = ${tenantId} and slot_ms < ${BigInt(nowMs - dayMs)}`;
  const threads = await sql`
    delete from delivery_threads t where t.tenant_id = ${tenantId} and (t.destination_name, t.subject) in (
      select o.destination_name, o.subject from delivery_threads o
      where o.tenant_id = ${tenantId} and o.updated_ms < ${BigInt(nowMs - retentionMs)} and not exists (
        select from due_deliveries d
        where d.tenant_id = ${tenantId} and d.destination_name = o.destination_name and d.subject = o.subject)
      and not exists (
        select from rule_matches r where r.tenant_id = ${tenantId} and r.subject = o.subject and r.standing)
      and not exists (
        select from alert_groups g where g.tenant_id = ${tenantId} and g.group_key = o.subject)
      and not exists (
        select from summary_members m where m.tenant_id = ${tenantId} and m.summary_id = ${summaryIdOf(sql, sql`o.subject`)})
      limit ${portion})`;
  const summaries = await forgetOldSummaries(sql, tenantId, nowMs - retentionMs);
  const chains = await forgetOldChains(sql, tenantId, nowMs);
  const silences = await forgetOldSilences(sql, tenantId, nowMs - retentionMs);
  const messages = await forgetOldMessages(sql, tenantId, nowMs - recordMs);
  return threads.count === portion || summaries || chains || silences || messages;
}
