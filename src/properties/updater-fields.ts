import { askedOf, type Checked } from "../clause/checked.ts";
import type { Resolver } from "../clause/field.ts";
import { entityResolver } from "../entities/fields.ts";
import type { EntityRow } from "../entities/messages.ts";
import type { Broken } from "../rpc/constraint-rules.ts";

/** What keys of fields begin with in an updater's query. */
const prefix = "entity.";

/** The fields of entities, by their keys with `entity.` before them. */
export function updaterResolver(tenantId: string, tenantName: string): Resolver<EntityRow> {
  const inner = entityResolver(tenantId, { tenantName });
  return { ...inner, field: (key) => (key.startsWith(prefix) ? inner.field(key.slice(prefix.length)) : undefined) };
}

/** Keys in a clause that do not begin with `entity.`: they would name nothing, and so match all that they are to exclude. */
export function brokenKeys(clause: Checked): Broken[] {
  return askedOf(clause)
    .filter(({ field }) => !field.startsWith(prefix))
    .map(({ path }) => ({ path, rule: `must begin with ${prefix}` }));
}
