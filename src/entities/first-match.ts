import type { Fragment } from "postgres";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../clause/check.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { entityResolver } from "./fields.ts";
import { parseId } from "./identity.ts";
import { matchingEntities } from "./matching.ts";
import { bareKeys } from "./search.ts";

/** As many others of a clause's matches are counted. */
export const othersMax = 100;

/** How the first entity, by name, that a clause matches is found. */
export interface FirstEntity {
  /** The clause's keys without a prefix. */
  bareKeys: readonly string[];
  /**
   * Statements that select the entity's id, its name and how many others match, in this order; no row where
   * there is none: the first one that has a row says it. A clause that is nothing but ids finds deleted ones, too, where no living one matches. `metadataKeys`: those of the bare keys that metadata have.
   */
  statements(metadataKeys: ReadonlySet<string>): Fragment[];
}

/** @param path the clause's place in the request, for errors. @throws code 3 for what breaks a rule of the language */
export function firstEntity(db: Db, tenant: { id: string; name: string }, clause: Clause, path: string): FirstEntity {
  const checked = checkClause(clause, path);
  return {
    bareKeys: bareKeys(checked),
    statements(metadataKeys) {
      const columns = entityResolver(tenant.id, { tenantName: tenant.name, metadataKeys });
      const { from, sql, few } = matchingEntities(db, tenant.id, checked, columns);
      // Where an index finds few, they are put in order; else the walk along entities_name meets the first ones soon.
      const matching = few
        ? db`select name, id from ${from} where ${sql}`
        : db`select name, id from ${from} where ${sql} order by name, id limit ${othersMax + 1}`;
      const living = first(db, matching as Fragment);
      if (clause.withIds === undefined) return [living];
      const ids = clause.withIds.ids.flatMap((id) => parseId(id) ?? []);
      const deleted = db`
        select name, id from entities where tenant_id = ${tenant.id} and id = any(${byteaArray(ids)}::bytea[])`;
      return [living, first(db, deleted as Fragment)];
    },
  };
}

function first(db: Db, matching: Fragment): Fragment {
  return db`
    with matching as materialized (${matching})
    select id, name, (select least(count(*) - 1, ${othersMax}::int4)::int4 from matching) as others
    from matching order by name, id limit 1`;
}

/** An entity that is known already, as `firstEntity` selects one. */
export function knownEntity(db: Db, tenantId: string, id: Buffer): FirstEntity {
  const named = db`select name from entities where tenant_id = ${tenantId} and id = ${id}`;
  return { bareKeys: [], statements: () => [db`select ${id}::bytea, (${named}), 0`] };
}
