import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";

/**
 * Joins each row of `sent`, which has an id, with what an insert of its entity needs, locked until the transaction ends; one
 * that is not there is left out. For writes by `on conflict … do update`, which so make no row: design/statements.
 */
export const storedRow = (db: Db, tenantId: string): Fragment => db`
  cross join lateral (
    select tenant_id, name, dimensions, metadata, custom_properties, created_ms, updated_ms from entities
    where tenant_id = ${tenantId} and entities.id = sent.id limit 1 for no key update
  ) as here`;
