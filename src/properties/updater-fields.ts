import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { clauseOf, clausesOf, memberOf } from "../clause/check.ts";
import type { Resolver } from "../clause/field.ts";
import type { Db } from "../db/connect.ts";
import { entityResolver } from "../entities/fields.ts";
import type { EntityRow } from "../entities/messages.ts";
import type { Broken } from "../rpc/rules.ts";

/** What keys of fields begin with in an updater's query. */
const prefix = "entity.";

/** The fields of entities, by their keys with `entity.` before them. */
export function updaterResolver(db: Db, tenantId: string, tenantName: string): Resolver<EntityRow> {
  const inner = entityResolver(db, tenantId, { tenantName });
  return { ...inner, field: (key) => (key.startsWith(prefix) ? inner.field(key.slice(prefix.length)) : undefined) };
}

/** Keys in a clause, which has been checked, that do not begin with `entity.`: they would name nothing, and so match all that they are to exclude. */
export function brokenKeys(clause: Clause, path: string): Broken[] {
  const member = memberOf(clause, path);
  const checked = (key: string, place: string) =>
    key.startsWith(prefix) ? [] : [{ path: `${member.path}.${place}`, rule: `must begin with ${prefix}` }];
  switch (member.case) {
    case "allOf":
    case "anyOf":
      return clausesOf(member).flatMap(([inner, place]) => brokenKeys(inner, place));
    case "noneOf":
      return brokenKeys(...clauseOf(member));
    case "filter":
    case "oneOf":
      return checked(member.value.field, "field");
    case "range":
      return checked(member.value.path, "path");
    case "withIds":
      return [];
  }
}
