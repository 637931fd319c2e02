import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { planWithoutValues } from "../db/plans.ts";
import { countOf } from "../tenants/usage-counters.ts";

/** Events that a transaction has locked. */
export interface LockedEvents {
  tenantId: string;
  /** Those of the asked ones that there are. */
  ids: Buffer[];
  /** The version of the tenant's rules; undefined while the tenant has no row of state, which means 0. */
  rulesVersion: bigint | undefined;
  /** The consumers that have a cursor in the tenant's feed (src/events/consumers/). */
  consumers: readonly string[];
  /** How many events the tenant has, as far as transactions are committed. */
  eventCount: number;
}

/**
 * Locks events until the transaction ends. Everything that happens to occurrences happens under this lock: statements
 * after this one see all that earlier holders have written, and only they do, so what is read about occurrences is read in
 * statements of their own.
 *
 * All writers lock in one order: entity_keys, entities by id, a cursor of the feed, events by id, rows below the event, due_work,
 * tenant_state.
 */
export async function lockEvents(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<LockedEvents> {
  planWithoutValues(tx);
  return await lockSentEvents(tx, tenantId, ids);
}

/** The same on a connection of what comes in, where no statement is planned with values. */
export async function lockSentEvents(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<LockedEvents> {
  // The primary key, in its order: sorted is nothing on the connections of what comes in (design/statements).
  const rows = await tx<{ id: Buffer | null; rulesVersion: bigint; consumers: string[]; eventCount: bigint | null }[]>`
    select locked.id, s.rules_version as "rulesVersion",
      array(select name from feed_cursors where tenant_id = ${tenantId}) as consumers,
      (${countOf(tx, tenantId, "events")}) as "eventCount"
    from tenant_state s left join lateral (
      select e.id from events e
      where e.tenant_id = ${tenantId} and e.id = any(${byteaArray(ids)}::bytea[]) order by e.id for no key update
    ) as locked on true
    where s.tenant_id = ${tenantId}`.execute();
  const [first] = rows;
  return {
    tenantId,
    ids: rows.flatMap(({ id }) => id ?? []),
    rulesVersion: first?.rulesVersion,
    consumers: first?.consumers ?? [],
    eventCount: Number(first?.eventCount ?? 0n),
  };
}
