import type { StaleDataSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { type Matching, toMatching } from "../../../clause/to-sql.ts";
import { byteaArray, textArray } from "../../../db/batch.ts";
import type { Db } from "../../../db/connect.ts";
import { home } from "../../../db/home-row.ts";
import { matchingIds, splitIds } from "../../../entities/batched-writes.ts";
import { entityResolver } from "../../../entities/fields.ts";
import { paced } from "../../../event-loop.ts";
import { tenantNameOf } from "../../../tenants/tenant.ts";
import { matchingRules } from "../../rules/match-store.ts";
import type { LoadedTrigger } from "../../rules/tenant-rules.ts";
import { keyText, staleSubject } from "../../subject/subject.ts";
import type { Troubles } from "./source.ts";
import { apart } from "./stale-trouble.ts";

const portion = 10_000;

/** Data of an entity that stay away for a trigger, or do so no more. */
export interface StaleChange {
  triggerName: string;
  /** Undefined: it waits for no data any more. */
  trigger: LoadedTrigger | undefined;
  entityId: Buffer;
  lastMs: number;
  fired: boolean;
}

interface Left {
  triggerName: string;
  entityId: Buffer;
  lastMs: number;
  fired: boolean;
}

/** Ends the watches of triggers that wait for data no more, or that no rule uses. Skips from one trigger to the next by the key. */
export async function dropOthers(tx: Db, tenantId: string, stale: readonly LoadedTrigger[]): Promise<StaleChange[]> {
  const watched = await tx<{ name: string }[]>`
    with recursive watched (name) as (
      (select trigger_name from stale_watches where tenant_id = ${tenantId} order by trigger_name limit 1)
      union all
      select next.* from watched cross join lateral (
        select trigger_name from stale_watches
        where tenant_id = ${tenantId} and trigger_name > watched.name order by trigger_name limit 1) as next
    )
    select name from watched`;
  const kept = new Set(stale.map(({ name }) => name));
  const others = watched.map(({ name }) => name).filter((name) => !kept.has(name));
  if (others.length === 0) return [];
  const gone = await tx<Left[]>`
    delete from stale_watches where tenant_id = ${tenantId} and trigger_name = any(${textArray(others)}::text[])
    returning trigger_name as "triggerName", entity_id as "entityId", last_ms::float8 as "lastMs", fired`;
  return over(gone, undefined);
}

const over = (left: readonly Left[], trigger: LoadedTrigger | undefined): StaleChange[] =>
  left.filter(({ fired }) => fired).map((row) => ({ ...row, trigger, fired: false }));

/** Takes in the entities that triggers mean by now; answers those that stayed away and are not meant any more. */
export async function enrolAll(
  tx: Db,
  tenantId: string,
  stale: readonly LoadedTrigger[],
  troubles: Troubles,
  nowMs: number,
): Promise<StaleChange[]> {
  const resolver = entityResolver(tenantId, { tenantName: await tenantNameOf(tx, tenantId) });
  const changes: StaleChange[] = [];
  for (const trigger of stale) {
    const clause = (trigger.type.source.value as StaleDataSource).entityQuery?.clause;
    const takeIn = async () => {
      const matching =
        clause === undefined ? { sql: tx`true`, sources: [] } : toMatching(tx, clause, "clause", resolver, "match");
      return await enrol(tx, tenantId, trigger, matching, nowMs);
    };
    changes.push(...(await apart(tx, trigger.name, troubles, takeIn)));
  }
  return changes;
}

/** Both lists come in the order of ids: what differs is found here, so that only that is written. */
async function enrol(tx: Db, tenantId: string, trigger: LoadedTrigger, matching: Matching, nowMs: number) {
  const meant = await matchingIds(tx, tenantId, matching, portion);
  const watched = await tx<{ ids: Buffer }[]>`
    select string_agg(entity_id, ''::bytea order by entity_id) as ids from (
      select entity_id, (row_number() over (order by entity_id) - 1) / ${portion}::int4 as portion
      from stale_watches where tenant_id = ${tenantId} and trigger_name = ${trigger.name}
    ) as watched
    group by portion order by portion`;
  const { added, gone } = await differing(
    meant,
    watched.map(({ ids }) => ids),
  );
  const left: Left[] = [];
  for (let from = 0; from < gone.length; from += portion) {
    left.push(
      ...(await tx<Left[]>`
        delete from stale_watches
        where tenant_id = ${tenantId} and trigger_name = ${trigger.name}
          and entity_id = any(${byteaArray(gone.slice(from, from + portion))}::bytea[])
        returning trigger_name as "triggerName", entity_id as "entityId", last_ms::float8 as "lastMs", fired`),
    );
  }
  for (let from = 0; from < added.length; from += portion) {
    await beginToWatch(tx, tenantId, trigger.name, added.slice(from, from + portion), nowMs);
  }
  return over(left, trigger);
}

/** Data are awaited from now on; of entities whose data stay away for a rule that goes on, the next ones end that. */
async function beginToWatch(tx: Db, tenantId: string, triggerName: string, ids: readonly Buffer[], nowMs: number) {
  const keys = ids.map((id) => staleSubject(triggerName, id, "").key);
  const matching = await matchingRules(tx, tenantId, keys);
  const away = ids.filter((_, i) => matching.has(keyText(keys[i] as Buffer)));
  await tx`
    insert into stale_watches (tenant_id, trigger_name, entity_id, last_ms, fired)
    select home.tenant_id, ${triggerName}, id, case when away then 0 else ${BigInt(nowMs)}::int8 end, away
    from ${home(tx, tenantId)}, (
      select id, id = any(${byteaArray(away)}::bytea[]) as away from unnest(${byteaArray(ids)}::bytea[]) as meant (id)
    ) as meant
    on conflict do nothing`;
}

/** What of two lists of ids in their order, each in portions, only the first has, and what only the second. */
async function differing(meant: readonly Buffer[], watched: readonly Buffer[]) {
  const pace = paced(() => {});
  const [wanted, known] = [meant.flatMap(splitIds), watched.flatMap(splitIds)];
  const added: Buffer[] = [];
  const gone: Buffer[] = [];
  let at = 0;
  for (const id of wanted) {
    while (at < known.length && Buffer.compare(known[at] as Buffer, id) < 0) gone.push(known[at++] as Buffer);
    if (at < known.length && id.equals(known[at] as Buffer)) at += 1;
    else added.push(id);
    if ((at + added.length) % 1000 === 0) await pace();
  }
  gone.push(...known.slice(at));
  return { added, gone };
}
