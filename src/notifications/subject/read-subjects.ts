import type { Db } from "../../db/connect.ts";
import type { EntityRow } from "../../entities/messages.ts";
import { readEntities } from "../../entities/read.ts";
import type { EventIdentity } from "../../events/fields.ts";
import type { Occurrence } from "../../events/lifecycle.ts";
import { parseOccurrenceId } from "../../events/occurrence-id.ts";
import { findOccurrences, type OccurrenceKey, occurrenceText } from "../../events/occurrences.ts";
import { keyText, occurrenceRef, type SubjectRef } from "./subject.ts";

/** Holds the current state of a subject. An occurrence or entity that was deleted, or that the subject has not, is undefined. */
export interface SubjectState {
  readonly occurrence: { readonly event: EventIdentity; readonly occurrence: Occurrence } | undefined;
  readonly entity: EntityRow | undefined;
}

/** Reads the current state of subjects, by `keyText`: all occurrences in one statement, all entities in another. */
export async function readSubjects(
  db: Db,
  tenantId: string,
  subjects: Iterable<SubjectRef>,
): Promise<Map<string, SubjectState>> {
  const all = [...subjects];
  const keys = new Map<string, OccurrenceKey>();
  const entityIds = new Map<string, Buffer>();
  for (const { eventId, number, entityId } of all) {
    if (eventId !== undefined && number !== undefined)
      keys.set(occurrenceText({ eventId, number }), { eventId, number });
    if (entityId !== undefined) entityIds.set(keyText(entityId), entityId);
  }
  const [occurrences, entities] = await Promise.all([
    keys.size === 0 ? undefined : findOccurrences(db, tenantId, [...keys.values()]),
    entityIds.size === 0 ? [] : readEntities(db, tenantId, [...entityIds.values()]),
  ]);
  const byId = new Map(entities.map((entity) => [keyText(entity.id), entity]));
  return new Map(
    all.map(({ key, eventId, number, entityId }) => [
      keyText(key),
      {
        occurrence: eventId && number !== undefined ? occurrences?.get(occurrenceText({ eventId, number })) : undefined,
        entity: entityId && byId.get(keyText(entityId)),
      },
    ]),
  );
}

/** Reads an occurrence by its id in the API, in one statement; undefined: there is none. */
export async function readOccurrence(db: Db, tenantId: string, id: string): Promise<SubjectState["occurrence"]> {
  const key = parseOccurrenceId(id);
  if (key === undefined) return undefined;
  const subject = occurrenceRef(key);
  return (await readSubjects(db, tenantId, [subject])).get(keyText(subject.key))?.occurrence;
}
