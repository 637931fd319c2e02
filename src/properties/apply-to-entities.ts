import { isDeepStrictEqual } from "node:util";
import type { Matcher } from "../clause/matcher.ts";
import type { CustomProperties } from "../entities/custom-properties.ts";
import { isOverfull } from "../entities/terms.ts";
import type { Pace } from "../event-loop.ts";

/** An updater that is ready to be applied. */
export interface ReadyUpdater<Row> {
  matches: Matcher<Row>;
  properties: CustomProperties;
}

/**
 * The properties that an entity has after these updaters, each of which sees what the earlier ones have set; undefined
 * when nothing changes. One that would bring the entity above `propertiesMax` properties, or above what the index holds of
 * them, leaves it alone. Work of many updaters is cut into slices.
 */
export async function applyUpdaters<Row extends { custom_properties: CustomProperties }>(
  entity: Row,
  updaters: readonly ReadyUpdater<Row>[],
  propertiesMax: number,
  pace: Pace,
): Promise<CustomProperties | undefined> {
  let row = entity;
  for (const { matches, properties } of updaters) {
    const wait = pace();
    if (wait !== undefined) await wait;
    if (holdsAll(row.custom_properties, properties)) continue;
    // Most answer at once, and a tenant has thousands: only those that do not are waited for.
    const matched = matches(row, pace);
    if (!(typeof matched === "boolean" ? matched : await matched)) continue;
    const next = { ...row.custom_properties, ...properties };
    if (Object.keys(next).length <= propertiesMax && !isOverfull("c", next)) row = { ...row, custom_properties: next };
  }
  return row === entity || isDeepStrictEqual(row.custom_properties, entity.custom_properties)
    ? undefined
    : row.custom_properties;
}

function holdsAll(stored: CustomProperties, properties: CustomProperties): boolean {
  for (const name of Object.keys(properties)) {
    const value = properties[name];
    if (!Object.hasOwn(stored, name)) return false;
    if (stored[name] !== value && !(typeof value === "object" && isDeepStrictEqual(stored[name], value))) return false;
  }
  return true;
}
