import { batch, signal } from "@preact/signals";
import type { Failure } from "../data/calls.ts";
import { lastAnswer, rememberAnswer } from "../data/last-answers.ts";
import {
  type EventRow,
  type ListAction,
  listAfter,
  matchingRows,
  noRows,
  type Order,
  orderOf,
  rowKey,
  type Sort,
} from "./list-rows.ts";
import type { QueryInit } from "./query.ts";

/** Most rows that are kept of an address that was left. */
const keptMax = 500;
/** Time for which rows that have come are marked. */
const freshMs = 1500;

/** The list of a query as it was left. */
interface Left {
  readonly rows: readonly EventRow[];
  readonly total: number;
}

/** A query, and how far its pages were read. */
interface Reading {
  query: QueryInit;
  order: Order;
  sort: Sort;
  /** The cursor of the next page; undefined: all is loaded. */
  next: string | undefined;
  /** The end of the pages that were read, as it was then; undefined: all is loaded. Shown rows change in place, so the last of them is no end. */
  end: EventRow | undefined;
  /** Aborts what is read of it. */
  until: AbortController;
}

/** A query with the rows that are shown of it, and how far its pages were read. */
export type Listing = ReturnType<typeof listing>;

/** @param isHeld whether rows stay where they are, asked when an answer has come */
export function listing(isHeld: () => boolean) {
  const state = signal(noRows);
  const fresh = signal<ReadonlySet<string>>(new Set());
  const sort: Sort = { key: "severity", descending: true };
  const reading: Reading = {
    query: {},
    order: orderOf(sort),
    sort,
    next: undefined,
    end: undefined,
    until: new AbortController(),
  };
  let fading: ReturnType<typeof setTimeout> | undefined;

  /** Marks rows that have come for a moment. */
  function markFresh(keys: readonly string[]): void {
    if (keys.length === 0) return;
    fresh.value = new Set([...fresh.value, ...keys]);
    clearTimeout(fading);
    fading = setTimeout(() => {
      fresh.value = new Set();
    }, freshMs);
  }

  return {
    state,
    fresh,
    isHeld,
    reading,
    hint: signal(""),
    loading: signal(true),
    failure: signal<Failure | undefined>(undefined),
    buildQuery: (): QueryInit => ({}),
    /** The fields that rows are read with since `show`; pages follow each other with those that the first one was asked for. */
    shownFields: undefined as QueryInit["fields"],
    /** The reread that goes on, and the one that follows it. */
    rereading: undefined as Promise<boolean> | undefined,
    rereadingNext: undefined as Promise<boolean> | undefined,
    /** The count that is to come, and when the last one was made. */
    counting: undefined as ReturnType<typeof setTimeout> | undefined,
    countedAtMs: 0,
    /** The names of the list that is asked for, and of the one that is shown. */
    wanted: "",
    shown: undefined as string | undefined,

    /** Changes the rows; those that come are marked for a moment where `marks`. */
    apply(action: ListAction, marks = false): void {
      const before = new Set(state.peek().rows.map(rowKey));
      state.value = listAfter(state.peek(), action, reading.order);
      if (marks)
        markFresh(
          state
            .peek()
            .rows.map(rowKey)
            .filter((key) => !before.has(key)),
        );
    },

    /** Notes how far the pages lead that were read. */
    readTo(cursor: string | undefined, last: EventRow | undefined): void {
      reading.next = cursor;
      reading.end = cursor === undefined ? undefined : last;
    },
  };
}

/** Keeps what is shown for a person who comes back while the server is away. */
export function keep({ state, shown, reading }: Listing): void {
  if (shown === undefined) return;
  const all = matchingRows(state.peek()).sort(reading.order);
  rememberAnswer(shown, { rows: all.slice(0, keptMax), total: state.peek().total } satisfies Left);
}

/** Shows what was kept of the query that could not be read. */
export function showLeft(list: Listing): void {
  const left = list.shown === list.wanted ? undefined : lastAnswer<Left>(list.wanted);
  if (left === undefined) return;
  list.readTo(undefined, undefined);
  list.shown = list.wanted;
  list.apply({ kind: "replace", ...left });
}

/** Shows nothing: what was found is no answer to a query that cannot be asked. */
export function empty(list: Listing): void {
  list.readTo(undefined, undefined);
  list.shown = undefined;
  batch(() => {
    list.apply({ kind: "replace", rows: [], total: 0 });
    list.hint.value = "";
  });
}

/** Builds the query anew, since a range of time may lead to now. @throws as the query of the address */
export const newQuery = ({ buildQuery, shownFields, reading }: Listing): QueryInit => ({
  ...buildQuery(),
  fields: shownFields ?? reading.query.fields,
});
