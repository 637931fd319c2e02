import { uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { countBeyond } from "../deciding/chain-counts.ts";
import type { Result } from "./result.ts";

/** A result of a delivery that would have made an event beyond the bound of what set it off. */
export type BeyondResult = Result & { readonly beyond: string };

export const isBeyond = (result: Result): result is BeyondResult => result.beyond !== undefined;

/**
 * Counts deliveries that made no event because of the bound, those that are still the caller's. Returns what is to be recorded: of each
 * rule and root the first one, whose error says how many there are; the others are deleted.
 */
export async function recordBeyond(tx: Db, tenantId: string, results: readonly BeyondResult[]): Promise<Result[]> {
  const fences = JSON.stringify(Object.fromEntries(results.map(({ row }) => [row.id, String(row.fence)])));
  const own = await tx<{ id: string }[]>`
    select id from due_deliveries
    where tenant_id = ${tenantId} and id = any(${uuidArray(results.map(({ row }) => row.id))}::uuid[])
      and fence = (${fences}::jsonb ->> id::text)::bigint
    order by id for no key update`;
  const ids = new Set(own.map(({ id }) => id));
  const held = results.filter(({ row }) => ids.has(row.id));
  const kept: Result[] = [];
  const dropped: string[] = [];
  const groups = [...Map.groupBy(held, ({ beyond, row }) => `${beyond} ${row.ruleId}`)].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  for (const [, group] of groups) {
    const [first] = group as [BeyondResult, ...BeyondResult[]];
    const { beyond: root, row } = first;
    const summary = await countBeyond(tx, tenantId, { root, ruleId: row.ruleId, count: group.length }, row);
    const isFirst = summary.deliveryId === row.id;
    if (isFirst) kept.push({ row, status: "SUMMARISED", error: summary.error });
    else await rewriteError(tx, tenantId, summary);
    dropped.push(...group.slice(isFirst ? 1 : 0).map((each) => each.row.id));
  }
  if (dropped.length > 0) {
    await tx`delete from due_deliveries where tenant_id = ${tenantId} and id = any(${uuidArray(dropped)}::uuid[])`;
  }
  return kept;
}

const rewriteError = (
  tx: Db,
  tenantId: string,
  { deliveryId, deliveryMs, error }: { deliveryId: string; deliveryMs: bigint; error: string },
) =>
  tx`
    update delivery_history set error = ${error}
    where tenant_id = ${tenantId} and created_ms = ${deliveryMs} and id = ${deliveryId}`;
