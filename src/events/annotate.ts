import { randomInt } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type AnnotationItem,
  type AnnotationResult,
  AnnotationResultSchema,
} from "#gen/belfry/events/v1/management_service_pb.ts";
import { bigintArray, byteaArray, int4Array, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { lockEvents } from "./lock.ts";
import { keyText, type OccurrenceKey, occurrenceKey, readOccurrences } from "./occurrences.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
const newId = () => Array.from({ length: 20 }, () => letters[randomInt(letters.length)]).join("");

interface Note extends OccurrenceKey {
  id: string;
  text: string;
}

/**
 * Writes notes on occurrences, or replaces the texts of notes, in the caller's transaction; an item that names nothing known
 * fails by itself. Not to be repeated blindly: each new note is one more. `author` is the name that new notes carry,
 * `annotationsMax` how many an occurrence may have.
 */
export async function annotate(
  tx: Db,
  tenantId: string,
  items: readonly AnnotationItem[],
  { author, annotationsMax, nowMs }: { author: string; annotationsMax: number; nowMs: number },
): Promise<AnnotationResult[]> {
  const asked = items.map((item) => ({ item, key: occurrenceKey(item) }));
  const keys = [...new Map(asked.flatMap(({ key }) => (key === undefined ? [] : [[keyText(key), key]]))).values()];
  const events = new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  // So that no occurrence is deleted meanwhile, and two calls do not pass the bound together.
  await lockEvents(tx, tenantId, [...events.values()]);
  const [occurrences, notes] = await Promise.all([readOccurrences(tx, tenantId, keys), readNotes(tx, tenantId, keys)]);
  const added: Note[] = [];
  const changed = new Map<string, Note>();
  const results = asked.map(({ item, key }) => {
    const known = key !== undefined && occurrences.has(keyText(key)) ? key : undefined;
    const ids = known && notes.get(keyText(known));
    const error = errorOf(item, known !== undefined, ids, annotationsMax);
    const id = item.annotationId === "" ? newId() : item.annotationId;
    if (error === "" && known !== undefined) {
      const note = { ...known, id, text: item.annotation };
      if (item.annotationId === "") {
        added.push(note);
        notes.set(keyText(known), new Set(ids).add(id));
      } else {
        changed.set(id, note);
      }
    }
    const { eventId, occurrenceId } = item;
    const annotationId = error === "" ? id : item.annotationId || undefined;
    return create(AnnotationResultSchema, { eventId, occurrenceId, annotationId, success: error === "", error });
  });
  // What was added by an item of this call may be changed by a later one.
  const fresh = added.map((note) => ({ ...note, text: changed.get(note.id)?.text ?? note.text }));
  await writeNotes(tx, tenantId, fresh, [...changed.values()], author, BigInt(nowMs));
  return results;
}

function errorOf(
  item: AnnotationItem,
  known: boolean,
  ids: ReadonlySet<string> | undefined,
  annotationsMax: number,
): string {
  if (!known) return "the event has no such occurrence";
  if (item.annotationId !== "") return ids?.has(item.annotationId) ? "" : "the occurrence has no such annotation";
  if (item.annotation === "") return "annotation is needed";
  if ((ids?.size ?? 0) < annotationsMax) return "";
  return `the occurrence has ${annotationsMax} annotations already, as many as BELFRY_ANNOTATIONS_MAX allows`;
}

async function readNotes(tx: Db, tenantId: string, keys: readonly OccurrenceKey[]) {
  const rows = await tx<{ event_id: Buffer; number: number; id: string }[]>`
    select a.event_id, a.number, a.id
    from unnest(
        ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
        ${int4Array(keys.map(({ number }) => number))}::int4[]
      ) as asked (event_id, number)
      join annotations a on a.tenant_id = ${tenantId} and a.event_id = asked.event_id and a.number = asked.number`;
  const ids = new Map<string, Set<string>>();
  for (const { event_id: eventId, number, id } of rows) {
    const key = keyText({ eventId, number });
    ids.set(key, (ids.get(key) ?? new Set()).add(id));
  }
  return ids;
}

async function writeNotes(
  tx: Db,
  tenantId: string,
  added: readonly Note[],
  changed: readonly Note[],
  author: string,
  nowMs: bigint,
): Promise<void> {
  const columns = (notes: readonly Note[]) => tx`unnest(
      ${byteaArray(notes.map(({ eventId }) => eventId))}::bytea[],
      ${int4Array(notes.map(({ number }) => number))}::int4[],
      ${textArray(notes.map(({ id }) => id))}::text[],
      ${textArray(notes.map(({ text }) => text))}::text[],
      ${bigintArray(notes.map((_, i) => BigInt(i)))}::bigint[]
    ) as note (event_id, number, id, text, place)`;
  if (added.length > 0) {
    await tx`
      insert into annotations (tenant_id, event_id, number, id, text, created_by, created_ms, updated_ms, place)
      select ${tenantId}::uuid, event_id, number, id, text, ${author}, ${nowMs}::bigint, ${nowMs}::bigint, place
      from ${columns(added)}`;
  }
  if (changed.length > 0) {
    await tx`
      update annotations a set text = note.text, updated_ms = ${nowMs}
      from ${columns(changed)}
      where a.tenant_id = ${tenantId} and a.event_id = note.event_id and a.number = note.number and a.id = note.id`;
  }
}
