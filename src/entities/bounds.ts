/** How many entities a tenant may have, deleted ones with it, and how many names of their fields are known. */
export interface EntityBounds {
  entitiesMax: number;
  fieldsMax: number;
}

/** No bounds. */
export const unbounded: EntityBounds = { entitiesMax: Infinity, fieldsMax: Infinity };

/** Why the data of an entity that would be one too many are not stored. */
export const tooManyEntities = ({ entitiesMax }: EntityBounds) =>
  `the tenant has ${entitiesMax} entities, as many as BELFRY_ENTITIES_MAX allows`;
