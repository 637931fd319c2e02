import type { Entity } from "#gen/belfry/entities/v1/entity_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { clientOf } from "../data/calls.ts";

const entities = clientOf(EntityService);

/** Reads an entity; `undefined` if it does not exist. */
export async function readEntity(id: string, signal: AbortSignal): Promise<Entity | undefined> {
  const searchInput = { query: { clause: { withIds: { ids: [id] } } } };
  return (await entities.searchEntities({ searchInput }, { signal })).entities?.entities[0];
}
