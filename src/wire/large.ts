import type { DescField, DescMessage } from "@bufbuild/protobuf";

type Values = Record<string, unknown>;
type ListField = DescField & { fieldKind: "list" };

/** So many elements of a list are written at a time, and so many that are no messages. */
export const itemsAtOnce = 16;
export const valuesAtOnce = 10_000;

/** The lists of a message that are long, so that it is written in portions; empty: it is written as one. */
export function longLists(desc: DescMessage, message: Values): ListField[] {
  return listsOf(desc).filter((field) => {
    const list = message[field.localName] as unknown[] | undefined;
    if (list === undefined) return false;
    if (field.message === undefined) return list.length > valuesAtOnce;
    return list.length > itemsAtOnce || list.some((item) => longLists(field.message, item as Values).length > 0);
  });
}

const lists = new WeakMap<DescMessage, ListField[]>();

/** The lists in which much may stand; those of google's own types are written as they are. */
function listsOf(desc: DescMessage): ListField[] {
  let found = lists.get(desc);
  if (found === undefined) {
    const own = desc.typeName.startsWith("google.") ? [] : desc.fields;
    found = own.filter((field): field is ListField => field.fieldKind === "list");
    lists.set(desc, found);
  }
  return found;
}

/** A message without these lists. */
export function withoutLists(message: Values, fields: readonly DescField[]): Values {
  return { ...message, ...Object.fromEntries(fields.map(({ localName }) => [localName, []])) };
}

/** The elements of a list in portions; one that itself holds a long list comes alone. */
export function* portionsOf(field: ListField, message: Values): Generator<{ items: unknown[]; large: boolean }> {
  const list = message[field.localName] as unknown[];
  const { message: desc } = field;
  const most = desc === undefined ? valuesAtOnce : itemsAtOnce;
  let items: unknown[] = [];
  for (const item of list) {
    if (desc !== undefined && longLists(desc, item as Values).length > 0) {
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
