import { randomInt } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type AnnotationItem,
  AnnotationItemSchema,
  type AnnotationResult,
  AnnotationResultSchema,
} from "#gen/belfry/events/v1/management_service_pb.ts";
import { bigintArray, byteaArray, int4Array, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { itemError } from "../rpc/validate.ts";
import { lockEvents } from "./lock.ts";
import { type OccurrenceKey, occurrenceKey, occurrenceText, readOccurrences } from "./occurrences.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
/** What the notes on an occurrence may hold together, bytes: they are shown together. */
const bytesMax = pageBytesMax;
/** The id of a new note. */
export const newAnnotationId = () => Array.from({ length: 20 }, () => letters[randomInt(letters.length)]).join("");

interface Note extends OccurrenceKey {
  id: string;
  text: string;
}

/** The notes on an occurrence: the bytes of each by its id, and of all. */
interface Notes {
  readonly sizes: Map<string, number>;
  bytes: number;
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
  const keys = [
    ...new Map(asked.flatMap(({ key }) => (key === undefined ? [] : [[occurrenceText(key), key]]))).values(),
  ];
  const events = new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  // So that no occurrence is deleted meanwhile, and two calls do not pass the bound together.
  await lockEvents(tx, tenantId, [...events.values()]);
  const [occurrences, notes] = await Promise.all([readOccurrences(tx, tenantId, keys), readNotes(tx, tenantId, keys)]);
  const added: Note[] = [];
  const changed = new Map<string, Note>();
  const results = asked.map(({ item, key }, i) => {
    const known = key !== undefined && occurrences.has(occurrenceText(key)) ? key : undefined;
    const on = known && (notes.get(occurrenceText(known)) ?? { sizes: new Map(), bytes: 0 });
    const error = itemError(AnnotationItemSchema, item, `annotations[${i}]`) || errorOf(item, on, annotationsMax);
    const id = item.annotationId === "" ? newAnnotationId() : item.annotationId;
    if (error === "" && known !== undefined && on !== undefined) {
      const note = { ...known, id, text: item.annotation };
      if (item.annotationId === "") added.push(note);
      else changed.set(id, note);
      on.bytes += growthOf(item, on);
      on.sizes.set(id, Buffer.byteLength(item.annotation));
      notes.set(occurrenceText(known), on);
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

const growthOf = ({ annotationId, annotation }: AnnotationItem, { sizes }: Notes) =>
  Buffer.byteLength(annotation) - (sizes.get(annotationId) ?? 0);

/** Why an item cannot be written. One that does not grow is taken where the notes hold more than they may. */
function errorOf(item: AnnotationItem, on: Notes | undefined, annotationsMax: number): string {
  if (on === undefined) return "the event has no such occurrence";
  const { annotationId, annotation } = item;
  if (annotationId !== "" && !on.sizes.has(annotationId)) return "the occurrence has no such annotation";
  if (annotationId === "" && annotation === "") return "annotation is needed";
  if (annotationId === "" && on.sizes.size >= annotationsMax) {
    return `the occurrence has ${annotationsMax} annotations already, the most that it may have`;
  }
  const growth = growthOf(item, on);
  if (growth <= 0 || on.bytes + growth <= bytesMax) return "";
  return `the annotations of the occurrence would hold ${on.bytes + growth} bytes together; ${bytesMax} are allowed`;
}

async function readNotes(tx: Db, tenantId: string, keys: readonly OccurrenceKey[]) {
  const rows = await tx<{ event_id: Buffer; number: number; id: string; bytes: number }[]>`
    select asked.event_id, asked.number, a.id, a.bytes
    from unnest(
        ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
        ${int4Array(keys.map(({ number }) => number))}::int4[]
      ) as asked (event_id, number)
      cross join lateral (
        select id, octet_length(text) as bytes from annotations
        where tenant_id = ${tenantId} and event_id = asked.event_id and number = asked.number offset 0
      ) as a`;
  const notes = new Map<string, Notes>();
  for (const { event_id: eventId, number, id, bytes } of rows) {
    const key = occurrenceText({ eventId, number });
    const on = notes.get(key) ?? { sizes: new Map(), bytes: 0 };
    on.sizes.set(id, bytes);
    on.bytes += bytes;
    notes.set(key, on);
  }
  return notes;
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
      select home.tenant_id, event_id, number, id, text, ${author}, ${nowMs}::bigint, ${nowMs}::bigint, place
      from ${home(tx, tenantId)}, ${columns(added)}`;
  }
  if (changed.length > 0) {
    // They are there, under the locks of their events.
    await tx`
      insert into annotations (tenant_id, event_id, number, id, text, created_by, created_ms, updated_ms, place)
      select home.tenant_id, event_id, number, id, text, '', 0, ${nowMs}::bigint, 0 from ${home(tx, tenantId)}, ${columns(changed)}
      on conflict (tenant_id, event_id, number, id) do update set
        text = excluded.text, updated_ms = excluded.updated_ms`;
  }
}
