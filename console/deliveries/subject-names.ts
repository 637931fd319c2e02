import { create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Delivery } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { calledOf } from "../events/entity-names.ts";

const events = clientOf(EventQueryService);
const entities = clientOf(EntityService);
const askedMax = 500;

/** Names by the ids of events and entities; empty for what is not stored any more, absent until it is known. */
export type Names = ReadonlyMap<string, string>;

/** Returns the labels of a delivery's group, as in `rack=r1, cluster=c1`; empty without any. */
export const groupText = ({ groupLabels }: Pick<Delivery, "groupLabels">) =>
  Object.entries(groupLabels)
    .map(([name, text]) => `${name}=${text}`)
    .join(", ");

/** Reads what events are called, with their entities. */
async function eventNames(ids: string[]): Promise<[string, string][]> {
  const clause = create(ClauseSchema, { withIds: { ids } });
  const fields = [{ field: "name" }, { field: "entityName" }];
  const { results } = await events.searchEvents({ query: { clause, fields, pageInput: { limit: askedMax } } });
  return results.map((event) => [event.id, `${event.name} on ${calledOf(event)}`]);
}

async function entityNames(ids: string[]): Promise<[string, string][]> {
  const searchInput = { query: { clause: create(ClauseSchema, { withIds: { ids } }) }, pageInput: { limit: askedMax } };
  const found = (await entities.searchEntities({ searchInput })).entities?.entities ?? [];
  return found.map(({ id, displayName }) => [id, displayName]);
}

/** The names of what deliveries are about, and of these ids, as they come to be known. */
export function useNames(rows: readonly Delivery[], eventIds: readonly string[], entityIds: readonly string[]): Names {
  const known = useSignal<Names>(new Map());
  const unknown = (ids: readonly string[]) =>
    [...new Set(ids)].filter((id) => id !== "" && !known.value.has(id)).slice(0, askedMax);
  const wantedEvents = unknown([...eventIds, ...rows.map(({ eventId }) => eventId)]);
  const ofEntities = rows.filter(({ eventId }) => eventId === "").map(({ entityId }) => entityId);
  const wantedEntities = unknown([...entityIds, ...ofEntities]);
  useEffect(() => {
    const ask = async (ids: string[], read: (ids: string[]) => Promise<[string, string][]>) => {
      if (ids.length === 0) return;
      // Without names there are ids: what fails is asked again with the next rows.
      const found = await read(ids).catch(() => undefined);
      if (found) known.value = new Map([...known.value, ...ids.map((id) => [id, ""] as const), ...found]);
    };
    void ask(wantedEvents, eventNames);
    void ask(wantedEntities, entityNames);
  }, [wantedEvents.join(), wantedEntities.join()]);
  return known.value;
}

/** Returns the subject of a delivery, by its name where that is known. */
export function subjectText(delivery: Delivery, names: Names): string {
  const { eventId, entityId, metricName, memberCount, subject } = delivery;
  if (memberCount > 0) {
    const labels = groupText(delivery);
    return `Group of ${memberCount}${labels === "" ? "" : `: ${labels}`}`;
  }
  // A link without a text cannot be read aloud, and the id would flash before the name.
  if (eventId !== "") return names.get(eventId) || (names.has(eventId) ? `Event ${eventId}` : "Event");
  const entity = names.get(entityId) || entityId;
  if (metricName !== "") return `${metricName} on ${entity}`;
  return entity || subject;
}
