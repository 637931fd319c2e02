import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Resolver } from "../clause/field.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { idText, parseId } from "./identity.ts";
import type { EntityRow } from "./messages.ts";

const DIMENSIONS = "dimensions.";

/** How clauses read the rows of entities. */
export function entityResolver(db: Db): Resolver<EntityRow> {
  return {
    field(name) {
      if (name === "name") return { type: "text", sql: db`name`, get: (row) => row.name };
      if (!name.startsWith(DIMENSIONS)) return undefined;
      const key = name.slice(DIMENSIONS.length);
      return {
        type: "text",
        sql: db`(dimensions ->> ${key}::text)`,
        get: ({ dimensions }) => (Object.hasOwn(dimensions, key) ? dimensions[key] : undefined),
        // Containment, because that is what the index on the object answers.
        index([only]) {
          if (only?.operation !== Operation.OP_EQUALS || typeof only.value !== "string") return undefined;
          return { sql: db`dimensions @> ${JSON.stringify({ [key]: only.value })}::text::jsonb`, exact: true };
        },
      };
    },
    withIds(ids) {
      const known = ids.flatMap((text) => parseId(text) ?? []);
      return db`id = any(${byteaArray(known)}::bytea[])`;
    },
    idsOf: (row) => [idText(row.id)],
  };
}
