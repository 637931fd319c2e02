import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../clause/check.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { entityResolver } from "./fields.ts";
import { parseId } from "./identity.ts";
import { matchingEntities } from "./matching.ts";
import { knownKeys } from "./search.ts";

/**
 * The id of the first entity, by name, that a clause matches; undefined: none. A clause that is nothing but ids finds
 * deleted ones, too, where no living one matches. @param path the clause's place in the request, for errors.
 * @throws code 3 for what breaks a rule of the language
 */
export async function firstEntity(
  db: Db,
  tenant: { id: string; name: string },
  clause: Clause,
  path: string,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const checked = checkClause(clause, path);
  const columns = entityResolver(tenant.id, {
    tenantName: tenant.name,
    metadataKeys: await knownKeys(db, tenant.id, checked),
  });
  const { from, sql, few } = matchingEntities(db, tenant.id, checked, columns);
  // Where an index finds few, they are put in order; else the walk along entities_name meets the first one soon.
  const found = few
    ? db<{ id: Buffer }[]>`
        with matching as materialized (select name, id from ${from} where ${sql})
        select id from matching order by name, id limit 1`
    : db<{ id: Buffer }[]>`select id from ${from} where ${sql} order by name, id limit 1`;
  const [row] = await cancelOn(found, signal);
  if (row !== undefined || clause.withIds === undefined) return row?.id;
  const ids = clause.withIds.ids.flatMap((id) => parseId(id) ?? []);
  const [deleted] = await db<{ id: Buffer }[]>`
    select id from entities where tenant_id = ${tenant.id} and id = any(${byteaArray(ids)}::bytea[])
    order by name, id limit 1`;
  return deleted?.id;
}
