/** What updaters of the test ask for. */
export type Condition =
  | { site: string }
  | { nameStart: string }
  | { property: string; equals: number }
  | { not: Condition }
  | { any: Condition[] };

export interface ModelUpdater {
  name: string;
  enabled: boolean;
  sequence: number;
  condition: Condition;
  properties: Record<string, number>;
}

export interface ModelEntity {
  site: string;
  name: string;
  deleted: boolean;
  properties: Record<string, number>;
}

const propertiesMax = 200;

export function holds(condition: Condition, entity: ModelEntity): boolean {
  if ("site" in condition) return entity.site === condition.site;
  if ("nameStart" in condition) return entity.name.startsWith(condition.nameStart);
  if ("property" in condition) return entity.properties[condition.property] === condition.equals;
  if ("not" in condition) return !holds(condition.not, entity);
  return condition.any.some((each) => holds(each, entity));
}

/** What custom properties and their updaters should do, in the plainest words; all of it happens at once. */
export class PropertyModel {
  readonly entities = new Map<string, ModelEntity>();
  readonly updaters = new Map<string, ModelUpdater>();

  /** A model of an entity. One that says nothing new runs no updater. */
  put(source: string, site: string, name: string) {
    const before = this.entities.get(source);
    const entity = { site, name, deleted: false, properties: before?.properties ?? {} };
    this.entities.set(source, entity);
    if (before === undefined || before.deleted || before.name !== name) this.run(entity);
  }

  deleteEntity(source: string) {
    const entity = this.entities.get(source);
    if (entity !== undefined) entity.deleted = true;
  }

  /** Returns the sources of those that it changed. */
  set(sources: readonly string[], properties: Record<string, number>): string[] {
    const changed = this.living(sources).filter(([, entity]) =>
      Object.entries(properties).some(([key, value]) => entity.properties[key] !== value),
    );
    for (const [, entity] of changed) entity.properties = { ...entity.properties, ...properties };
    return changed.map(([source]) => source);
  }

  delete(sources: readonly string[], keys: readonly string[] | undefined) {
    for (const [, entity] of this.living(sources)) {
      const kept = Object.entries(entity.properties).filter(([key]) => keys !== undefined && !keys.includes(key));
      entity.properties = Object.fromEntries(kept);
    }
  }

  /** Creates or replaces updaters, and starts those that are enabled. */
  change(updaters: readonly ModelUpdater[]) {
    for (const updater of updaters) this.updaters.set(updater.name, updater);
    const started = updaters.filter(({ enabled }) => enabled);
    const matched = [...this.entities.values()].filter(
      (entity) => !entity.deleted && started.some(({ condition }) => holds(condition, entity)),
    );
    for (const entity of matched) this.run(entity);
  }

  private living(sources: readonly string[]) {
    return [...this.entities].filter(([source, { deleted }]) => sources.includes(source) && !deleted);
  }

  /** All that are enabled, in their order; each sees what the earlier ones have set. */
  private run(entity: ModelEntity) {
    const enabled = [...this.updaters.values()].filter((updater) => updater.enabled);
    enabled.sort((a, b) => a.sequence - b.sequence || (a.name < b.name ? -1 : 1));
    for (const { condition, properties } of enabled) {
      const next = { ...entity.properties, ...properties };
      if (holds(condition, entity) && Object.keys(next).length <= propertiesMax) entity.properties = next;
    }
  }
}
