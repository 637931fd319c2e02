import type { DescField, DescMessage } from "@bufbuild/protobuf";

type Values = Record<string, unknown>;
type LongField = DescField & { fieldKind: "list" | "message" };

/** This many elements of a list are written at a time, and this many that are no messages. */
export const itemsAtOnce = 16;
export const valuesAtOnce = 2000;

/** The fields of a message in which long lists stand, so that it is written in portions; empty: it is written as one. */
export function longFields(desc: DescMessage, message: Values): LongField[] {
  return fieldsOf(desc).filter((field) => {
    const value = message[field.localName];
    if (value === undefined) return false;
    if (field.fieldKind === "message") return longFields(field.message, value as Values).length > 0;
    const list = value as unknown[];
    if (field.message === undefined) return list.length > valuesAtOnce;
    return list.length > itemsAtOnce || list.some((item) => longFields(field.message, item as Values).length > 0);
  });
}

const fields = new WeakMap<DescMessage, LongField[]>();

/** The fields in which much may stand; google's own types are written as they are. */
function fieldsOf(desc: DescMessage): LongField[] {
  let found = fields.get(desc);
  if (found === undefined) {
    const own = desc.typeName.startsWith("google.") ? [] : desc.fields;
    found = own.filter(
      (field): field is LongField =>
        field.fieldKind === "list" || (field.fieldKind === "message" && field.oneof === undefined),
    );
    fields.set(desc, found);
  }
  return found;
}

/** A message without these fields. */
export function withoutFields(message: Values, without: readonly LongField[]): Values {
  const empty = without.map(({ localName, fieldKind }) => [localName, fieldKind === "list" ? [] : undefined]);
  return { ...message, ...Object.fromEntries(empty) };
}

/** The elements of a list in portions; one that itself holds a long list comes alone, as does what is no list. */
export function* chunksOf(field: LongField, message: Values): Generator<{ items: unknown[]; large: boolean }> {
  if (field.fieldKind === "message") {
    yield { items: [message[field.localName]], large: true };
    return;
  }
  const list = message[field.localName] as unknown[];
  const { message: desc } = field;
  const most = desc === undefined ? valuesAtOnce : itemsAtOnce;
  let items: unknown[] = [];
  for (const item of list) {
    if (desc !== undefined && longFields(desc, item as Values).length > 0) {
      if (items.length > 0) yield { items, large: false };
      yield { items: [item], large: true };
      items = [];
    } else if (items.push(item) === most) {
      yield { items, large: false };
      items = [];
    }
  }
  if (items.length > 0) yield { items, large: false };
}
