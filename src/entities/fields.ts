import type { Resolver } from "../clause/field.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { parseId } from "./identity.ts";

const DIMENSIONS = "dimensions.";

/** How clauses read the rows of entities. */
export function entityResolver(db: Db): Resolver {
  return {
    field(key) {
      if (key === "name") return { kind: "text", sql: db`name` };
      if (key.startsWith(DIMENSIONS) && key.length > DIMENSIONS.length) {
        return { kind: "textOf", object: db`dimensions`, key: key.slice(DIMENSIONS.length) };
      }
      return undefined;
    },
    withIds(ids) {
      const known = ids.flatMap((text) => parseId(text) ?? []);
      return db`id = any(${byteaArray(known)}::bytea[])`;
    },
  };
}
