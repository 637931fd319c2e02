import { idText, parseId } from "../entities/identity.ts";

/** The id of an occurrence as users see it: its event's id, a colon, its number. */
export function occurrenceIdText(eventId: Buffer, number: number): string {
  return `${idText(eventId)}:${number}`;
}

/** The event and number of an occurrence's id; undefined when it cannot be one. */
export function parseOccurrenceId(text: string): { eventId: Buffer; number: number } | undefined {
  const [, id = "", number = ""] = /^(.*):([1-9]\d{0,8})$/.exec(text) ?? [];
  const eventId = parseId(id);
  return eventId === undefined ? undefined : { eventId, number: Number(number) };
}
