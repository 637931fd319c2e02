import type { Event, Occurrence } from "#gen/belfry/events/v1/event_pb.ts";

/** A row of the list: an occurrence, with the event it is of. */
export interface EventRow {
  readonly event: Event;
  readonly occurrence: Occurrence;
}

/** The order of the list. */
export interface Sort {
  readonly key: string;
  readonly descending: boolean;
  /** Acknowledged occurrences follow all others. */
  readonly acknowledgedLast?: boolean;
}

/** Compares rows as a search orders them. */
export type Order = (a: EventRow, b: EventRow) => number;

export const rowKey = ({ occurrence }: EventRow) => occurrence.id;

export const rowsOf = (results: readonly Event[]): EventRow[] =>
  results.flatMap((event) => event.occurrences.map((occurrence) => ({ event, occurrence })));

/** Returns the order of rows in a search that sorts by `sort`. */
export function orderOf({ key, descending, acknowledgedLast }: Sort): Order {
  const valueOf = ({ event, occurrence }: EventRow): bigint | number | string => {
    if (key === "name") return event.name ?? "";
    if (key === "entityName") return event.entityName ?? "";
    const value =
      occurrence[key as "severity" | "status" | "startTime" | "lastSeen" | "instanceCount" | "acknowledged"];
    return typeof value === "boolean" ? Number(value) : (value ?? 0);
  };
  const acknowledged = ({ occurrence }: EventRow) => Number(occurrence.acknowledged ?? false);
  return (a, b) => {
    if (acknowledgedLast && acknowledged(a) !== acknowledged(b)) return acknowledged(a) - acknowledged(b);
    const [x, y] = [valueOf(a), valueOf(b)];
    if (x !== y) return x < y === descending ? 1 : -1;
    return Number((b.occurrence.lastSeen ?? 0n) - (a.occurrence.lastSeen ?? 0n));
  };
}

/** Returns the row at whose place a search lists an event. */
export const placeOf = (event: Event | undefined, order: Order) => event && rowsOf([event]).sort(order)[0];

/** The rows of the list. While a person reads they are held: none of them moves. */
export interface ListRows {
  readonly rows: readonly EventRow[];
  /** Rows that have come while rows are held, and belong between them. */
  readonly waiting: readonly EventRow[];
  /** Keys of rows that no longer match. */
  readonly gone: ReadonlySet<string>;
  /** Number of rows that the query finds, loaded or not. */
  readonly total: number;
  /** False while rows are out of order, or some of them no longer match. */
  readonly inOrder: boolean;
}

/** Rows that were read again. */
interface Reread {
  readonly found: readonly EventRow[];
  /** Tells whether a row is among `found` if it still matches. */
  wasRead(row: EventRow): boolean;
  /** Rows that no longer match, as they are now. */
  readonly departed: readonly EventRow[];
  readonly isHeld: boolean;
}

export type ListAction =
  | { readonly kind: "replace"; readonly rows: readonly EventRow[]; readonly total: number }
  | { readonly kind: "page"; readonly rows: readonly EventRow[]; readonly isHeld: boolean }
  /** Without a total: all rows are loaded, so it follows them. */
  | ({ readonly kind: "reread"; readonly total?: number } & Reread)
  | { readonly kind: "count"; readonly total: number }
  | { readonly kind: "release" };

export const noRows: ListRows = { rows: [], waiting: [], gone: new Set(), total: 0, inOrder: true };

/** Returns the rows that match, as far as they are loaded: those that wait are the last. */
export const matchingRows = ({ rows, gone, waiting }: ListRows): EventRow[] => [
  ...rows.filter((row) => !gone.has(rowKey(row))),
  ...waiting,
];

/** Returns the list after an action. */
export function listAfter(list: ListRows, action: ListAction, order: Order): ListRows {
  switch (action.kind) {
    case "replace":
      return { ...noRows, rows: action.rows.toSorted(order), total: action.total };
    case "page":
      return withPage(list, action, order);
    case "reread": {
      const next = action.isHeld ? rereadHeld(list, action, order) : rereadFree(list, action, order);
      const grown = matchingRows(next).length - matchingRows(list).length;
      return { ...next, total: action.total ?? list.total + grown };
    }
    case "count":
      return { ...list, total: action.total };
    case "release":
      if (list.inOrder) return list;
      return { ...noRows, rows: matchingRows(list).sort(order), total: list.total };
  }
}

/** Adds a further page; rows that are held keep their place before it. */
function withPage(list: ListRows, { rows, isHeld }: { rows: readonly EventRow[]; isHeld: boolean }, order: Order) {
  const known = new Set([...list.rows, ...list.waiting].map(rowKey));
  const added = rows.filter((row) => !known.has(rowKey(row))).sort(order);
  if (isHeld) return { ...list, rows: [...list.rows, ...added], inOrder: false };
  return { ...list, rows: merge(list.rows, added, order) };
}

function rereadFree(list: ListRows, { found, wasRead }: Reread, order: Order): ListRows {
  const left = list.rows.filter((row) => !wasRead(row));
  return {
    ...list,
    rows: merge(left, found.toSorted(order), order),
    waiting: list.waiting.filter((row) => !wasRead(row)),
    gone: new Set(left.map(rowKey).filter((key) => list.gone.has(key))),
  };
}

/** New rows wait, or follow where they belong behind all others; missing ones are gone, shown as they are in `departed`. */
function rereadHeld(list: ListRows, { found, wasRead, departed }: Reread, order: Order): ListRows {
  const now = new Map(found.map((row) => [rowKey(row), row]));
  const departedNow = new Map(departed.map((row) => [rowKey(row), row]));
  const gone = new Set(list.gone);
  const placed = list.rows.map((row) => {
    const key = rowKey(row);
    const foundRow = now.get(key);
    if (foundRow !== undefined) gone.delete(key);
    else if (wasRead(row)) gone.add(key);
    return foundRow ?? departedNow.get(key) ?? row;
  });
  const last = placed
    .filter((row) => !gone.has(rowKey(row)))
    .reduce<EventRow | undefined>((max, row) => (max && order(row, max) < 0 ? max : row), undefined);
  const known = new Set(list.rows.map(rowKey));
  const newRows = found.filter((row) => !known.has(rowKey(row)));
  // Of rows of the same order those that come later follow.
  const isBehind = (row: EventRow) => last === undefined || order(row, last) >= 0;
  const waiting = list.waiting.filter((row) => !wasRead(row));
  return {
    ...list,
    rows: [...placed, ...newRows.filter(isBehind).sort(order)],
    waiting: [...waiting, ...newRows.filter((row) => !isBehind(row))],
    gone,
    inOrder: false,
  };
}

/** Merges two lists that are in order. */
function merge(a: readonly EventRow[], b: readonly EventRow[], order: Order): readonly EventRow[] {
  const merged: EventRow[] = [];
  let at = 0;
  for (const row of a) {
    for (let each = b[at]; each !== undefined && order(each, row) < 0; each = b[at]) {
      merged.push(each);
      at += 1;
    }
    merged.push(row);
  }
  return [...merged, ...b.slice(at)];
}
