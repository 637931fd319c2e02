import { jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { UpdaterRow } from "./messages.ts";

/** What counts of an updater for the bound of bytes. */
type Counted = Pick<UpdaterRow, "name" | "description" | "tags" | "entityInput" | "properties">;

/** The bytes that an updater takes when it is read: the same before it is stored as afterwards. */
const bytesSql = (db: Db) => db`octet_length(name) + octet_length(description) + octet_length(tags::text)
  + octet_length(entity_input::text) + octet_length(properties::text)`;

/** The bytes that each of these will hold; 0 for undefined. */
export async function bytesOf(db: Db, updaters: readonly (Counted | undefined)[]): Promise<number[]> {
  const column = <K extends keyof Counted>(name: K) => updaters.map((each) => each?.[name] ?? null);
  const rows = await db<{ bytes: number }[]>`
    select coalesce(${bytesSql(db)}, 0) as bytes from unnest(
      ${textArray(column("name"))}::text[], ${textArray(column("description"))}::text[], ${jsonArray(column("tags"))}::jsonb[],
      ${jsonArray(column("entityInput"))}::jsonb[], ${jsonArray(column("properties"))}::jsonb[]
    ) with ordinality as sent (name, description, tags, entity_input, properties, place)
    order by place`;
  return rows.map(({ bytes }) => bytes);
}

/** A tenant's updaters, each with its name and the bytes that it holds. */
export function heldUpdaters(db: Db, tenantId: string): Promise<{ id: string; name: string; bytes: number }[]> {
  return db`select id, name, ${bytesSql(db)} as bytes from property_updaters where tenant_id = ${tenantId}`;
}
