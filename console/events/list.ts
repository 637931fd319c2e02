import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { batch, signal } from "@preact/signals";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Event, Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf, type Failure, failureOfReading, isCancelled } from "../data/calls.ts";
import { lastAnswer, rememberAnswer } from "../data/last-answers.ts";
import { allOf, answerToQuery, type QueryInit, type Sort, sortBy } from "./query.ts";

/** A row of the list: an occurrence, with the event it is of. */
export interface EventRow {
  readonly event: Event;
  readonly occurrence: Occurrence;
}

const events = clientOf(EventQueryService);
const firstPage = 100;
const laterPages = 200;
/** Most rows that are kept of an address that was left. */
const keptMax = 500;
/** Time for which rows that have come are marked. */
const freshMs = 1500;
/** The shortest time between two counts of what the query finds. */
const countAgainMs = 1000;
/** Most changed events that the list reads again one by one; beyond that it reads all its rows again. */
export const changedMax = 500;
/** Most events that the server answers in a page. */
const pageMax = 1000;
/** Most values that a clause lists. */
const valuesMax = 10_000;
/** Most new rows that a reread adds to those that are loaded. */
const newMax = 1000;

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

/** The order of two rows in a search that sorts by `sort`. */
function compare({ key, descending, acknowledgedLast }: Sort) {
  const valueOf = ({ event, occurrence }: EventRow): bigint | number | string => {
    if (key === "name") return event.name ?? "";
    if (key === "entityName") return event.entityName ?? "";
    const value =
      occurrence[key as "severity" | "status" | "startTime" | "lastSeen" | "instanceCount" | "acknowledged"];
    return typeof value === "boolean" ? Number(value) : (value ?? 0);
  };
  const acknowledged = ({ occurrence }: EventRow) => Number(occurrence.acknowledged ?? false);
  return (a: EventRow, b: EventRow) => {
    if (acknowledgedLast && acknowledged(a) !== acknowledged(b)) return acknowledged(a) - acknowledged(b);
    const [x, y] = [valueOf(a), valueOf(b)];
    if (x !== y) return x < y === descending ? 1 : -1;
    return Number((b.occurrence.lastSeen ?? 0n) - (a.occurrence.lastSeen ?? 0n));
  };
}

const rowsOf = (results: readonly Event[]): EventRow[] =>
  results.flatMap((event) => event.occurrences.map((occurrence) => ({ event, occurrence })));

/** Returns a clause that matches occurrences that began when some of these did; with their events' ids, few others match. */
function startedWith(rows: readonly EventRow[]): Clause {
  const starts = [...new Set(rows.map(({ occurrence }) => Number(occurrence.startTime ?? 0n)))].slice(0, valuesMax);
  const values = starts.map((value) => create(ValueSchema, { kind: { case: "numberValue", value } }));
  return create(ClauseSchema, { oneOf: { field: "startTime", values } });
}

const eventIdsOf = (rows: readonly EventRow[]) => [...new Set(rows.map(({ event }) => event.id))];

export const rowKey = ({ occurrence }: EventRow) => occurrence.id;

/** The list of a query as it was left. */
interface Left {
  readonly rows: readonly EventRow[];
  readonly total: number;
}

/**
 * The occurrences that a query finds, page by page as they come into sight, and kept current as they change.
 * @param isHeld whether rows stay where they are, asked when an answer has come
 */
export function eventList(isHeld: () => boolean) {
  const rows = signal<readonly EventRow[]>([]);
  const waiting = signal<readonly EventRow[]>([]);
  const gone = signal<ReadonlySet<string>>(new Set());
  const fresh = signal<ReadonlySet<string>>(new Set());
  const total = signal(0);
  const hint = signal("");
  const loading = signal(true);
  const failure = signal<Failure | undefined>(undefined);
  let buildQuery: () => QueryInit = () => ({});
  let query: QueryInit = {};
  /** The fields that rows are read with since `show`; pages follow each other with those that the first one was asked for. */
  let shownFields: QueryInit["fields"];
  let sort: Sort = { key: "severity", descending: true };
  /** The cursor of the next page of `query`; undefined: all is loaded. */
  let next: string | undefined;
  /** The end of the pages that were read, as it was then; undefined: all is loaded. Shown rows change in place, so the last of them is no end. */
  let end: EventRow | undefined;
  let ended = new AbortController();
  let loadingMore = false;
  /** The names of the list that is asked for, and of the one that is shown. */
  let wanted = "";
  let shown: string | undefined;

  const present = () => rows.peek().filter((row) => !gone.peek().has(rowKey(row)));
  const matching = () => rows.peek().length - gone.peek().size + waiting.peek().length;

  /** Keeps what is shown for a person who comes back while the server is away. */
  function keep(): void {
    if (shown === undefined) return;
    const all = [...present(), ...waiting.peek()].sort(compare(sort));
    rememberAnswer(shown, { rows: all.slice(0, keptMax), total: total.peek() } satisfies Left);
  }

  /** Shows what was kept of the query that could not be read. */
  function showLeft(): void {
    const left = shown === wanted ? undefined : lastAnswer<Left>(wanted);
    if (left === undefined) return;
    readTo(undefined, undefined);
    shown = wanted;
    batch(() => {
      rows.value = [...left.rows].sort(compare(sort));
      total.value = left.total;
      waiting.value = [];
      gone.value = new Set();
    });
  }

  /** Shows nothing: what was found is no answer to a query that cannot be asked. */
  function empty(): void {
    readTo(undefined, undefined);
    shown = undefined;
    batch(() => {
      rows.value = [];
      waiting.value = [];
      gone.value = new Set();
      total.value = 0;
      hint.value = "";
    });
  }

  /** Notes how far the pages lead that were read. */
  function readTo(cursor: string | undefined, last: EventRow | undefined): void {
    next = cursor;
    end = cursor === undefined ? undefined : last;
  }

  /** Builds the query anew, since a range of time may lead to now. @throws as the query of the address */
  const newQuery = (): QueryInit => ({ ...buildQuery(), fields: shownFields ?? query.fields });

  /** Loads a page; the first one replaces all rows, a later one follows them while they are held. Returns false if the call failed. */
  async function load(cursor: string): Promise<boolean> {
    const { signal: until } = ended;
    const of = query;
    try {
      const pageInput = { limit: cursor === "" ? firstPage : laterPages, cursor };
      const asked = { ...of, sortBy: sortBy(sort), pageInput };
      const { results, pageInfo, hint: doubt } = await events.searchEvents({ query: asked }, { signal: until });
      // Rows that were read again meanwhile have another cursor.
      if (until.aborted || of !== query) return true;
      const known = new Set(cursor === "" ? [] : [...rows.value, ...waiting.value].map(rowKey));
      const added = rowsOf(results).filter((row) => !known.has(rowKey(row)));
      const lacking = shownFields === undefined ? [] : results.map(({ id }) => id);
      // A search places an event where its first occurrence belongs: here each occurrence is a row.
      const order = compare(sort);
      added.sort(order);
      batch(() => {
        if (cursor === "") {
          rows.value = added;
          waiting.value = [];
          gone.value = new Set();
          total.value = Number(pageInfo?.totalCount ?? 0n);
          hint.value = doubt;
          shown = wanted;
        } else if (isHeld()) {
          rows.value = [...rows.value, ...added];
          inOrder = false;
        } else rows.value = merge(rows.value, added, order);
        failure.value = undefined;
      });
      readTo(pageInfo?.hasNext ? pageInfo.endCursor : undefined, placeOf(results.at(-1)) ?? end);
      if (lacking.length > 0) await refresh(lacking);
    } catch (error) {
      if (!until.aborted && !isCancelled(error)) {
        const failed = failureOfReading(error);
        if (failed.away && cursor === "") showLeft();
        if (failed.invalid && cursor === "") empty();
        failure.value = failed;
      }
    }
    if (!until.aborted) loading.value = false;
    return until.aborted || failure.peek() === undefined;
  }

  /** Returns the row at whose place a search lists an event. */
  const placeOf = (event: Event | undefined) => event && rowsOf([event]).sort(compare(sort))[0];

  /**
   * Replaces the rows that were read again by `found`. While they are held, shown rows keep their place: new ones wait, or follow where they
   * belong behind all others, and missing ones are `gone`, shown as they are in `departed`. Returns the keys of rows that are new.
   */
  function applyFound(
    found: EventRow[],
    wasRead: (row: EventRow) => boolean,
    held: boolean,
    departed: readonly EventRow[],
  ): string[] {
    const order = compare(sort);
    const stillWaiting = waiting.value.filter((row) => !wasRead(row));
    const known = new Set(rows.value.map(rowKey));
    if (!held) {
      const left = rows.value.filter((row) => !wasRead(row));
      gone.value = new Set(left.map(rowKey).filter((key) => gone.value.has(key)));
      rows.value = merge(left, found.sort(order), order);
      waiting.value = stillWaiting;
      return found.map(rowKey).filter((key) => !known.has(key));
    }
    const now = new Map(found.map((row) => [rowKey(row), row]));
    const departedNow = new Map(departed.map((row) => [rowKey(row), row]));
    const stillGone = new Set(gone.value);
    const placed = rows.value.map((row) => {
      const key = rowKey(row);
      const foundRow = now.get(key);
      if (foundRow !== undefined) stillGone.delete(key);
      else if (wasRead(row)) stillGone.add(key);
      return foundRow ?? departedNow.get(key) ?? row;
    });
    const last = placed
      .filter((row) => !stillGone.has(rowKey(row)))
      .reduce<EventRow | undefined>((max, row) => (max && order(row, max) < 0 ? max : row), undefined);
    const newRows = found.filter((row) => !known.has(rowKey(row)));
    // Of rows of the same order those that come later follow.
    const isBehind = (row: EventRow) => last === undefined || order(row, last) >= 0;
    const behind = newRows.filter(isBehind).sort(order);
    rows.value = [...placed, ...behind];
    waiting.value = [...stillWaiting, ...newRows.filter((row) => !isBehind(row))];
    gone.value = stillGone;
    inOrder = false;
    return behind.map(rowKey);
  }

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

  /** False while rows are out of order, or some of them no longer match. */
  let inOrder = true;

  let rereading: Promise<boolean> | undefined;
  let rereadingNext: Promise<boolean> | undefined;

  /** Rereads all loaded rows and finds new ones between them. Returns whether that was done. */
  async function again(): Promise<boolean> {
    if (shown !== wanted || loading.peek()) return restart();
    // Of several that are wanted while one runs, one that follows it is enough.
    rereadingNext ??= Promise.resolve(rereading).then(() => {
      rereadingNext = undefined;
      rereading = rereadRows();
      return rereading;
    });
    return await rereadingNext;
  }

  async function rereadRows(): Promise<boolean> {
    // A search that has begun since finds it all.
    if (shown !== wanted || loading.peek()) return true;
    const { signal: until } = ended;
    const order = compare(sort);
    const to = end ?? rows.peek().toSorted(order).at(-1);
    const rowsMax = rows.peek().length + newMax;
    const found = new Map<string, EventRow>();
    let lastRead: EventRow | undefined;
    /** Tells whether rows up to the end are still to be read; rows of the same order follow each other by their ids. */
    const isBeforeEnd = () =>
      lastRead !== undefined &&
      to !== undefined &&
      (order(lastRead, to) < 0 || (order(lastRead, to) === 0 && !found.has(rowKey(to))));
    let cursor = "";
    try {
      const asked = newQuery();
      let count = 0;
      do {
        const wish = Math.max(cursor === "" ? firstPage : laterPages, rows.peek().length - found.size);
        const pageInput = { limit: Math.min(pageMax, wish), cursor };
        const { results, pageInfo } = await events.searchEvents(
          { query: { ...asked, sortBy: sortBy(sort), pageInput } },
          { signal: until },
        );
        if (until.aborted) return true;
        for (const row of rowsOf(results)) found.set(rowKey(row), row);
        lastRead = placeOf(results.at(-1)) ?? lastRead;
        cursor = pageInfo?.hasNext ? pageInfo.endCursor : "";
        count = Number(pageInfo?.totalCount ?? count);
      } while (cursor !== "" && found.size < rowsMax && isBeforeEnd());
      // Of rows beyond those that were read nothing is known.
      const wasRead = (row: EventRow) =>
        found.has(rowKey(row)) || cursor === "" || lastRead === undefined || order(row, lastRead) < 0;
      // What is shown and was not found may have moved behind them.
      const missing = rows.peek().filter((row) => wasRead(row) && !found.has(rowKey(row)));
      const moved = cursor === "" || !isHeld() ? [] : await readEvents(asked, eventIdsOf(missing), until);
      if (until.aborted) return true;
      const missed = new Set(missing.map(rowKey));
      for (const row of moved) if (missed.has(rowKey(row))) found.set(rowKey(row), row);
      const departed = await readDeparted(
        asked.fields,
        missing.filter((row) => !found.has(rowKey(row))),
        until,
      );
      if (until.aborted) return true;
      query = asked;
      shownFields = undefined;
      readTo(cursor === "" ? undefined : cursor, lastRead);
      batch(() => {
        applyFound([...found.values()], wasRead, isHeld(), departed);
        total.value = count;
        failure.value = undefined;
      });
      return true;
    } catch (error) {
      if (until.aborted || isCancelled(error)) return true;
      failure.value = failureOfReading(error);
      return false;
    }
  }

  /** Reads the rows of events that a query finds; of more than `changedMax` events the first. */
  async function readEvents(of: QueryInit, eventIds: readonly string[], until: AbortSignal): Promise<EventRow[]> {
    if (eventIds.length === 0) return [];
    const ids = create(ClauseSchema, { withIds: { ids: eventIds.slice(0, changedMax) } });
    const clause = of.clause === undefined ? ids : allOf([of.clause, ids]);
    const asked = { ...of, clause, pageInput: { limit: pageMax } };
    return rowsOf((await events.searchEvents({ query: asked }, { signal: until })).results);
  }

  /** While rows are held, reads the current state of those that no longer match: their actions depend on it. */
  async function readDeparted(
    fields: QueryInit["fields"],
    missing: readonly EventRow[],
    until: AbortSignal,
    held = isHeld,
  ): Promise<EventRow[]> {
    if (!held()) return [];
    return await readEvents({ clause: startedWith(missing), ...(fields && { fields }) }, eventIdsOf(missing), until);
  }

  /** Searches from the first page. Returns whether that was done. */
  async function restart(): Promise<boolean> {
    ended.abort();
    try {
      query = newQuery();
      shownFields = undefined;
    } catch (error) {
      batch(() => {
        empty();
        loading.value = false;
        failure.value = failureOfReading(error);
      });
      return false;
    }
    ended = new AbortController();
    loading.value = true;
    return await load("");
  }

  let counting: ReturnType<typeof setTimeout> | undefined;
  let countedAtMs = 0;

  /** Asks how many there are: what changed beyond the pages that are loaded is not known here. */
  function countAgain(): void {
    const { signal: until } = ended;
    if (counting !== undefined) return;
    counting = setTimeout(
      async () => {
        counting = undefined;
        countedAtMs = performance.now();
        const one = { ...query, fields: [{ field: "id" }], pageInput: { limit: 1 } };
        const answer = await events.searchEvents({ query: one }, { signal: until }).catch(() => undefined);
        if (answer !== undefined && !until.aborted) total.value = Number(answer.pageInfo?.totalCount ?? 0n);
      },
      Math.max(0, countedAtMs + countAgainMs - performance.now()),
    );
  }

  /**
   * Reads these events again: those that match now are shown as they are now, others leave, as far as rows are not `held`. Returns
   * whether that was done.
   */
  async function refresh(eventIds: readonly string[], held = isHeld): Promise<boolean> {
    await rereading;
    const { signal: until } = ended;
    if (until.aborted) return true;
    if (eventIds.length > changedMax) return await again();
    const fields = shownFields ?? query.fields;
    try {
      const read = await readEvents({ ...query, ...(fields && { fields }) }, eventIds, until);
      const changed = new Set(eventIds);
      const still = new Set(read.map(rowKey));
      const missing = rows.value.filter((row) => changed.has(row.event.id) && !still.has(rowKey(row)));
      const departed = await readDeparted(fields, missing, until, held);
      if (until.aborted) return true;
      const order = compare(sort);
      const stay = new Set(held() ? rows.value.map(rowKey) : []);
      // What lies beyond the pages that are loaded comes with its page.
      const found = read.filter((row) => end === undefined || order(row, end) <= 0 || stay.has(rowKey(row)));
      const before = matching();
      batch(() => {
        markFresh(applyFound(found, ({ event }) => changed.has(event.id), held(), departed));
        if (end === undefined) total.value += matching() - before;
      });
      if (end !== undefined) countAgain();
      return true;
    } catch {
      return until.aborted;
    }
  }

  return {
    rows,
    /** Rows that have come while rows are held; `release` shows them. */
    waiting,
    /** Keys of rows that no longer match; `release` removes them. */
    gone,
    /** Keys of rows that have just come. */
    fresh,
    total,
    /** The hint to its conditions; empty: none. */
    hint,
    loading,
    failure,
    /** Tells whether `rows` has all that match. */
    complete: () => next === undefined,

    /** Finds what this query finds, from the first page. Where it throws, nothing is searched until the next query. */
    async find(build: () => QueryInit, newSort: Sort, moreFields: readonly string[]): Promise<void> {
      ended.abort();
      keep();
      wanted = answerToQuery("events");
      sort = newSort;
      buildQuery = build;
      shownFields = [...always, ...moreFields].map((field) => ({ field }));
      await restart();
    },

    /** Reads the rows that are loaded with other fields from now on. */
    async show(moreFields: readonly string[]): Promise<void> {
      shownFields = [...always, ...moreFields].map((field) => ({ field }));
      await refresh(eventIdsOf(rows.peek()).slice(0, changedMax));
    },

    /** Loads the next page, or as many as bring a row: the table asks again only when their number grows. */
    async more(): Promise<void> {
      if (loadingMore || next === undefined) return;
      loadingMore = true;
      await rereading;
      const { signal: until } = ended;
      const { length } = rows.peek();
      while (next !== undefined && !until.aborted && (await load(next)) && rows.peek().length === length);
      loadingMore = false;
    },

    /** Shows the rows that wait, without those that are gone. */
    release(): void {
      if (inOrder) return;
      inOrder = true;
      batch(() => {
        rows.value = [...present(), ...waiting.value].sort(compare(sort));
        markFresh(waiting.value.map(rowKey));
        waiting.value = [];
        gone.value = new Set();
      });
    },

    again,
    refresh,
    keep,
  };
}

/** Two lists in order, as one. */
function merge(
  a: readonly EventRow[],
  b: readonly EventRow[],
  order: (x: EventRow, y: EventRow) => number,
): EventRow[] {
  if (b.length === 0) return [...a];
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
