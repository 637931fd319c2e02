import { batch } from "@preact/signals";
import { failureOfReading, isCancelled } from "../data/calls.ts";
import {
  changedMax,
  eventIdsOf,
  events,
  firstPage,
  laterPages,
  readDeparted,
  readEvents,
  readLoaded,
} from "./list-reads.ts";
import { placeOf, rowKey, rowsOf } from "./list-rows.ts";
import { empty, type Listing, newQuery, showLeft } from "./listing.ts";
import { sortBy } from "./query.ts";

/** Searches from the first page. Returns whether that was done. */
export async function restart(list: Listing): Promise<boolean> {
  const { reading } = list;
  reading.until.abort();
  try {
    reading.query = newQuery(list);
    list.shownFields = undefined;
  } catch (error) {
    batch(() => {
      empty(list);
      list.loading.value = false;
      list.failure.value = failureOfReading(error);
    });
    return false;
  }
  reading.until = new AbortController();
  list.loading.value = true;
  return await loadPage(list, "");
}

/** Loads a page; the first one replaces all rows, a later one follows them while they are held. Returns false if the call failed. */
export async function loadPage(list: Listing, cursor: string): Promise<boolean> {
  const { reading, failure } = list;
  const { query, sort, order } = reading;
  const { signal: until } = reading.until;
  try {
    const pageInput = { limit: cursor === "" ? firstPage : laterPages, cursor };
    const asked = { ...query, sortBy: sortBy(sort), pageInput };
    const { results, pageInfo, hint } = await events.searchEvents({ query: asked }, { signal: until });
    // Rows that were read again meanwhile have another cursor.
    if (until.aborted || query !== reading.query) return true;
    const lacking = list.shownFields === undefined ? [] : results.map(({ id }) => id);
    const rows = rowsOf(results);
    batch(() => {
      if (cursor === "") {
        list.apply({ kind: "replace", rows, total: Number(pageInfo?.totalCount ?? 0n) });
        list.hint.value = hint;
        list.shown = list.wanted;
      } else list.apply({ kind: "page", rows, isHeld: list.isHeld() });
      failure.value = undefined;
    });
    list.readTo(pageInfo?.hasNext ? pageInfo.endCursor : undefined, placeOf(results.at(-1), order) ?? reading.end);
    if (lacking.length > 0) await refresh(list, lacking);
  } catch (error) {
    if (!until.aborted && !isCancelled(error)) {
      const failed = failureOfReading(error);
      if (failed.away && cursor === "") showLeft(list);
      if (failed.invalid && cursor === "") empty(list);
      failure.value = failed;
    }
  }
  if (!until.aborted) list.loading.value = false;
  return until.aborted || failure.peek() === undefined;
}

/** Rereads all loaded rows and finds new ones between them. Returns whether that was done. */
export async function again(list: Listing): Promise<boolean> {
  if (list.shown !== list.wanted || list.loading.peek()) return restart(list);
  // Of several that are wanted while one runs, one that follows it is enough.
  list.rereadingNext ??= Promise.resolve(list.rereading).then(() => {
    list.rereadingNext = undefined;
    list.rereading = rereadRows(list);
    return list.rereading;
  });
  return await list.rereadingNext;
}

async function rereadRows(list: Listing): Promise<boolean> {
  // A search that has begun since finds it all.
  if (list.shown !== list.wanted || list.loading.peek()) return true;
  const { reading, state } = list;
  const { signal: until } = reading.until;
  try {
    const asked = newQuery(list);
    const loaded = { rows: state.peek().rows, end: reading.end };
    const sorted = { ...asked, sortBy: sortBy(reading.sort) };
    const { rows, wasRead, last, cursor, total } = await readLoaded(sorted, loaded, reading.order, until);
    if (until.aborted) return true;
    // What is shown and was not found may have moved behind them.
    const missing = state.peek().rows.filter((row) => wasRead(row) && !rows.has(rowKey(row)));
    const missed = new Set(missing.map(rowKey));
    const moved = cursor === "" || !list.isHeld() ? [] : await readEvents(asked, eventIdsOf(missing), until);
    if (until.aborted) return true;
    for (const row of moved) if (missed.has(rowKey(row))) rows.set(rowKey(row), row);
    const left = missing.filter((row) => !rows.has(rowKey(row)));
    const departed = list.isHeld() ? await readDeparted(asked.fields, left, until) : [];
    if (until.aborted) return true;
    reading.query = asked;
    list.shownFields = undefined;
    list.readTo(cursor === "" ? undefined : cursor, last);
    batch(() => {
      list.apply({ kind: "reread", found: [...rows.values()], wasRead, departed, isHeld: list.isHeld(), total });
      list.failure.value = undefined;
    });
    return true;
  } catch (error) {
    if (until.aborted || isCancelled(error)) return true;
    list.failure.value = failureOfReading(error);
    return false;
  }
}

/**
 * Reads these events again: those that match now are shown as they are now, others leave, as far as rows are not `held`. Returns
 * whether that was done.
 */
export async function refresh(list: Listing, eventIds: readonly string[], held = list.isHeld): Promise<boolean> {
  await list.rereading;
  const { reading, state } = list;
  const { signal: until } = reading.until;
  if (until.aborted) return true;
  if (eventIds.length > changedMax) return await again(list);
  const fields = list.shownFields ?? reading.query.fields;
  try {
    const read = await readEvents({ ...reading.query, ...(fields && { fields }) }, eventIds, until);
    const changed = new Set(eventIds);
    const still = new Set(read.map(rowKey));
    const missing = state.peek().rows.filter((row) => changed.has(row.event.id) && !still.has(rowKey(row)));
    const departed = held() ? await readDeparted(fields, missing, until) : [];
    if (until.aborted) return true;
    const { end, order } = reading;
    const stay = new Set(held() ? state.peek().rows.map(rowKey) : []);
    // What lies beyond the pages that are loaded comes with its page.
    const found = read.filter((row) => end === undefined || order(row, end) <= 0 || stay.has(rowKey(row)));
    const wasRead = ({ event }: { event: { id: string } }) => changed.has(event.id);
    const total = end === undefined ? undefined : state.peek().total;
    list.apply(
      { kind: "reread", found, wasRead, departed, isHeld: held(), ...(total !== undefined && { total }) },
      true,
    );
    if (end !== undefined) countAgain(list);
    return true;
  } catch {
    return until.aborted;
  }
}

/** The shortest time between two counts of what the query finds. */
const countAgainMs = 1000;

/** Asks how many there are, now and then: what changed beyond the pages that are loaded is not known here. */
function countAgain(list: Listing): void {
  const { signal: until } = list.reading.until;
  list.counting ??= setTimeout(
    async () => {
      list.counting = undefined;
      list.countedAtMs = performance.now();
      const one = { ...list.reading.query, fields: [{ field: "id" }], pageInput: { limit: 1 } };
      const answer = await events.searchEvents({ query: one }, { signal: until }).catch(() => undefined);
      if (answer !== undefined && !until.aborted)
        list.apply({ kind: "count", total: Number(answer.pageInfo?.totalCount ?? 0n) });
    },
    Math.max(0, list.countedAtMs + countAgainMs - performance.now()),
  );
}
