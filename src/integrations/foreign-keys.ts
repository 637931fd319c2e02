import { cut, oneLine } from "./foreign-texts.ts";

/** Keys that mean something to Belfry, whatever they mean to the tool that sends them. */
const meaningful: ReadonlySet<string> = new Set([
  "name",
  "type",
  "description",
  "units",
  "parent",
  "impactFromDimensions",
  "impactToDimensions",
  "productionState",
  "priority",
  "eventClass",
  "id",
  "source-type",
  "reason",
]);

/** Whether a key would be obeyed: what other tools send under it is stored under another one. */
export function hasMeaning(key: string): boolean {
  return meaningful.has(key) || key.startsWith("_svc_") || key.startsWith("_orgs_");
}

const prefix = "attribute.";

/** The key of a dimension or of an entity's metadata that other tools send. Different keys stay different. */
export function attributeKey(key: string): string {
  return cut(oneLine(hasMeaning(key) || key.startsWith(prefix) ? prefix + key : key), 255);
}

const valueCharactersMax = 1024;

/**
 * The dimensions of the entity that labels are about: those of `entityLabels` (BELFRY_ENTITY_LABELS) that are there; without any of
 * them `source=prometheus`.
 */
export function entityOfLabels(
  labels: Iterable<readonly [name: string, value: string]>,
  entityLabels: ReadonlySet<string>,
): Record<string, string> {
  const dimensions: [string, string][] = [];
  for (const [name, value] of labels) {
    if (value !== "" && entityLabels.has(name))
      dimensions.push([attributeKey(name), cut(oneLine(value), valueCharactersMax)]);
  }
  return Object.fromEntries(dimensions.length === 0 ? [["source", "prometheus"]] : dimensions);
}
