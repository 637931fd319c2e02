import { computed } from "@preact/signals";
import { again, loadPage, refresh, restart } from "./list-loading.ts";
import { changedMax, eventIdsOf } from "./list-reads.ts";
import { orderOf, type Sort } from "./list-rows.ts";
import { keep, listing } from "./listing.ts";
import { answerToQuery, type QueryInit } from "./query.ts";

const always = [
  "name",
  "entity",
  "entityName",
  "severity",
  "status",
  "summary",
  "acknowledged",
  "startTime",
  "lastSeen",
  "instanceCount",
];

const fieldsWith = (more: readonly string[]) => [...always, ...more].map((field) => ({ field }));

/**
 * The occurrences that a query finds, page by page as they come into sight, and kept current as they change.
 * @param isHeld whether rows stay where they are, asked when an answer has come
 */
export function eventList(isHeld: () => boolean) {
  const list = listing(isHeld);
  const { state, reading } = list;
  let loadingMore = false;

  return {
    rows: computed(() => state.value.rows),
    /** Rows that have come while rows are held; `release` shows them. */
    waiting: computed(() => state.value.waiting),
    /** Keys of rows that no longer match; `release` removes them. */
    gone: computed(() => state.value.gone),
    /** Keys of rows that have just come. */
    fresh: list.fresh,
    total: computed(() => state.value.total),
    /** The hint to its conditions; empty: none. */
    hint: list.hint,
    loading: list.loading,
    failure: list.failure,
    /** Tells whether `rows` has all that match. */
    complete: () => reading.next === undefined,

    /** Finds what this query finds, from the first page. Where it throws, nothing is searched until the next query. */
    async find(build: () => QueryInit, sort: Sort, moreFields: readonly string[]): Promise<void> {
      reading.until.abort();
      keep(list);
      list.wanted = answerToQuery("events");
      Object.assign(reading, { sort, order: orderOf(sort) });
      list.buildQuery = build;
      list.shownFields = fieldsWith(moreFields);
      await restart(list);
    },

    /** Reads the rows that are loaded with other fields from now on. */
    async show(moreFields: readonly string[]): Promise<void> {
      list.shownFields = fieldsWith(moreFields);
      await refresh(list, eventIdsOf(state.peek().rows).slice(0, changedMax));
    },

    /** Loads the next page, or as many as bring a row: the table asks again only when their number grows. */
    async more(): Promise<void> {
      if (loadingMore || reading.next === undefined) return;
      loadingMore = true;
      await list.rereading;
      const { signal: until } = reading.until;
      const { length } = state.peek().rows;
      while (reading.next !== undefined && !until.aborted && (await loadPage(list, reading.next)))
        if (state.peek().rows.length !== length) break;
      loadingMore = false;
    },

    /** Shows the rows that wait, without those that are gone. */
    release: () => list.apply({ kind: "release" }, true),
    again: () => again(list),
    refresh: (eventIds: readonly string[], held = isHeld) => refresh(list, eventIds, held),
    keep: () => keep(list),
  };
}
