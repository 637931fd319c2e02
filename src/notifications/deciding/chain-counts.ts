import type { Db } from "../../db/connect.ts";
import { nilRule } from "../rules/match-store.ts";

/** How many events rules make of what has set them off once: a report, a management call, a crossing, the end of a window. */
export const chainEventsMax = 100;
/** How long after its beginning something may still lead to events, ms: five rules with a day's delay each and late tries. */
const keptMs = 14 * 86_400_000;
const portion = 1000;

/** What this led to has reached its bound: nothing of the event is stored. */
export class BeyondChain extends Error {
  override name = "BeyondChain";
}

/** Counts an event that rules make, in the transaction that stores it, below its lock. @throws BeyondChain */
export async function countMadeEvent(tx: Db, tenantId: string, root: string): Promise<void> {
  const counted = await tx`
    insert into chain_counts as c (tenant_id, root, rule_id, count) values (${tenantId}, ${root}, ${nilRule}, 1)
    on conflict (tenant_id, root, rule_id) do update set count = c.count + 1 where c.count < ${chainEventsMax}::int4`;
  if (counted.count === 0) throw new BeyondChain(`${chainEventsMax} events were made`);
}

/** The delivery of a rule that says how many more events it would have made. */
export interface ChainSummary {
  readonly deliveryId: string;
  readonly deliveryMs: bigint;
  readonly error: string;
}

/** Counts events that a rule would have made; `delivery` is to say so if none does by now. */
export async function countBeyond(
  tx: Db,
  tenantId: string,
  { root, ruleId, count }: { root: string; ruleId: string; count: number },
  delivery: { id: string; createdMs: number },
): Promise<ChainSummary> {
  const [row] = await tx<[{ count: number; deliveryId: string; deliveryMs: bigint }]>`
    insert into chain_counts as c (tenant_id, root, rule_id, count, delivery_id, delivery_ms)
    values (${tenantId}, ${root}, ${ruleId}, ${count}::int4, ${delivery.id}, ${BigInt(delivery.createdMs)})
    on conflict (tenant_id, root, rule_id) do update set count = c.count + excluded.count
    returning count, delivery_id as "deliveryId", delivery_ms as "deliveryMs"`;
  const error = `chained: ${row.count} more events were not made: rules make at most ${chainEventsMax} of one cause`;
  return { ...row, error };
}

/** Forgets what nothing follows from any more, a portion of it; returns whether there may be more. */
export async function forgetOldChains(db: Db, tenantId: string, nowMs: number): Promise<boolean> {
  const oldest = `${(nowMs - keptMs)
    .toString(16)
    .padStart(12, "0")
    .replace(/^(.{8})/, "$1-")}-7000-8000-000000000000`;
  // By the primary key, up to the first beyond the portion: roots sort by time.
  const [end] = await db<{ root: string; ruleId: string }[]>`
    select root, rule_id as "ruleId" from chain_counts where tenant_id = ${tenantId} and root < ${oldest}
    order by root, rule_id offset ${portion} limit 1`;
  const untilEnd = end === undefined ? db`root < ${oldest}` : db`(root, rule_id) < (${end.root}, ${end.ruleId})`;
  await db`delete from chain_counts where tenant_id = ${tenantId} and ${untilEnd}`;
  return end !== undefined;
}
