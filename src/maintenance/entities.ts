import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import type {
  MaintenanceEntitySchema,
  MaintenanceTargetsSchema,
} from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import { type Matching, toMatching } from "../clause/to-sql.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { withIds } from "../entities/batched-writes.ts";
import { childIds } from "../entities/children.ts";
import { idText } from "../entities/identity.ts";
import { livingEntities } from "../entities/matching.ts";
import { isDecommissionedSql } from "../entities/production-state.ts";
import { withoutWindow } from "./members.ts";

/** Which entities a window is for. */
interface Target {
  /** The window's, so that what it does itself is not seen; empty: it is not stored. */
  id: string;
  clause: Clause;
  force: boolean;
  doNotPropagateToChildren: boolean;
}

type EntityInit = MessageInitShape<typeof MaintenanceEntitySchema>;

const countedMax = 10_000;
const shownMax = 100;
/** Parents whose children are read at once. */
const portion = 500;

/** The entities that a run would take in if it began now, children included. In the caller's transaction. @throws code 3 */
export async function targetsOf(
  tx: Db,
  tenant: { id: string; name: string },
  { id, clause, force, doNotPropagateToChildren }: Target,
  signal: AbortSignal,
): Promise<MessageInitShape<typeof MaintenanceTargetsSchema>> {
  const matching = toMatching(tx, clause, "specification.query.clause", withoutWindow(tenant.id, id, tenant.name));
  // Materialized: the order is that of what matches, and no reason to walk all entities by their ids.
  const taken = (which: Matching) => {
    const { from, sql } = livingEntities(tx, tenant.id, which);
    return cancelOn(
      tx<{ id: Buffer; name: string }[]>`
        with matching as materialized (
          select id, name from ${from}
          where ${sql} and (${force} or not ${isDecommissionedSql(tx)})
        )
        select id, name from matching order by id limit ${countedMax + 1}`,
      signal,
    );
  };
  const found = new Map<string, EntityInit>();
  const front = await taken(matching);
  for (const each of front) found.set(idText(each.id), { id: idText(each.id), name: each.name });
  while (!doNotPropagateToChildren && front.length > 0 && found.size <= countedMax) {
    const parents = front.splice(0, portion).map((each) => each.id);
    const ids = (await childIds(tx, tenant.id, parents)).filter((child) => !found.has(idText(child)));
    if (ids.length === 0) continue;
    const children = await taken(withIds(tx, ids));
    for (const each of children) found.set(idText(each.id), { id: idText(each.id), name: each.name, child: true });
    front.push(...children);
  }
  const more = found.size > countedMax;
  const entities = [...found.values()].slice(0, shownMax);
  return { count: BigInt(Math.min(found.size, countedMax)), more, entities };
}

/** Tells whether a run would take in no entity if it began now. Aborted by `signal`, it throws. */
export async function coversNothing(
  db: Db,
  tenant: { id: string; name: string },
  { id, clause, force }: Omit<Target, "doNotPropagateToChildren">,
  signal: AbortSignal,
): Promise<boolean> {
  const matching = toMatching(db, clause, "query.clause", withoutWindow(tenant.id, id, tenant.name));
  const { from, sql } = livingEntities(db, tenant.id, matching);
  const found = await cancelOn(
    db`
      select 1 from ${from}
      where ${sql} and (${force} or not ${isDecommissionedSql(db)})
      limit 1`,
    signal,
  );
  return found.length === 0;
}

/** How many entities a window holds now. */
export async function heldCount(db: Db, tenantId: string, windowId: string): Promise<bigint> {
  const [row] = await db<{ held: bigint }[]>`
    select count(*) as held from maintenance_members where tenant_id = ${tenantId} and window_id = ${windowId}`;
  return row?.held ?? 0n;
}

/** The entities that a window holds now: how many, and the first of them. */
export async function heldEntities(
  db: Db,
  tenantId: string,
  windowId: string,
): Promise<{ heldCount: bigint; held: EntityInit[] }> {
  // In one statement, so that both are of one moment. By maintenance_members_window.
  const rows = await db<{ held: bigint; id: Buffer | null; name: string }[]>`
    with members as materialized (
      select entity_id from maintenance_members where tenant_id = ${tenantId} and window_id = ${windowId}
    ), first as materialized (select entity_id from members order by entity_id limit ${shownMax})
    select counted.held, e.id, e.name
    from (select count(*) as held from members) as counted
      left join (first m join entities e on e.tenant_id = ${tenantId} and e.id = m.entity_id) on true
    order by m.entity_id`;
  const held = rows.flatMap(({ id, name }) => (id === null ? [] : [{ id: idText(id), name }]));
  return { heldCount: rows[0]?.held ?? 0n, held };
}
