import { create } from "@bufbuild/protobuf";
import { batch, signal } from "@preact/signals";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
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
/** Most rows that are read again beyond as many as are loaded. */
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

export const rowKey = ({ occurrence }: EventRow) => occurrence.id;

/** The list of a query as it was left. */
interface Left {
  readonly rows: readonly EventRow[];
  readonly total: number;
}

/** The occurrences that a query finds, page by page as they come into sight, and kept current as they change. */
export function eventList() {
  const rows = signal<readonly EventRow[]>([]);
  const waiting = signal<readonly EventRow[]>([]);
  const gone = signal<ReadonlySet<string>>(new Set());
  const fresh = signal<ReadonlySet<string>>(new Set());
  const total = signal(0);
  const loading = signal(true);
  const failure = signal<Failure | undefined>(undefined);
  let asking: () => QueryInit = () => ({});
  let query: QueryInit = {};
  /** The fields that rows are read with since `show`; pages follow each other with those that the first one was asked for. */
  let shownFields: QueryInit["fields"];
  let sort: Sort = { key: "severity", descending: true };
  let next: string | undefined;
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
    next = undefined;
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
    next = undefined;
    shown = undefined;
    batch(() => {
      rows.value = [];
      waiting.value = [];
      gone.value = new Set();
      total.value = 0;
    });
  }

  /** Takes the query as it is asked from the first page on: a range of time may lead to now. */
  function renew(): void {
    query = { ...asking(), fields: shownFields ?? query.fields };
    shownFields = undefined;
  }

  /**
   * Reads the page at `cursor` and adds it; the first one replaces what is there. While `held`, no row moves. Returns whether that was
   * done.
   */
  async function load(cursor: string, held = false): Promise<boolean> {
    const { signal: until } = ended;
    try {
      const pageInput = { limit: cursor === "" ? firstPage : laterPages, cursor };
      const asked = { ...query, sortBy: sortBy(sort), pageInput };
      const { results, pageInfo } = await events.searchEvents({ query: asked }, { signal: until });
      if (until.aborted) return true;
      const known = new Set(cursor === "" ? [] : [...rows.value, ...waiting.value].map(rowKey));
      const added = rowsOf(results).filter((row) => !known.has(rowKey(row)));
      const lacking = shownFields === undefined ? [] : results.map(({ id }) => id);
      // A search places an event where its first occurrence belongs: here each occurrence is a row.
      const order = compare(sort);
      if (cursor === "") rows.value = added.sort(order);
      else take(added, () => false, held);
      next = pageInfo?.hasNext ? pageInfo.endCursor : undefined;
      if (cursor === "") shown = wanted;
      if (cursor === "") waiting.value = [];
      if (cursor === "") gone.value = new Set();
      if (cursor === "") total.value = Number(pageInfo?.totalCount ?? 0n);
      failure.value = undefined;
      if (lacking.length > 0) await refresh(lacking, true);
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

  /**
   * Shows what was found in place of the rows that were `asked` for. While `held`, what is new waits, what matches no longer stays as
   * `gone`, and no row moves.
   */
  function take(found: EventRow[], asked: (row: EventRow) => boolean, held: boolean): void {
    const order = compare(sort);
    const stillWaiting = waiting.value.filter((row) => !asked(row));
    if (!held) {
      rows.value = merge(
        rows.value.filter((row) => !asked(row)),
        found.sort(order),
        order,
      );
      waiting.value = stillWaiting;
      gone.value = new Set(rows.value.map(rowKey).filter((key) => gone.value.has(key)));
      return;
    }
    const now = new Map(found.map((row) => [rowKey(row), row]));
    const end = rows.value.at(-1);
    const stillGone = new Set(gone.value);
    const placed = rows.value.map((row) => {
      const key = rowKey(row);
      const known = now.get(key);
      now.delete(key);
      if (known !== undefined) stillGone.delete(key);
      else if (asked(row)) stillGone.add(key);
      return known ?? row;
    });
    // Of rows of the same order those that come later follow.
    const isAfter = (row: EventRow) => end === undefined || order(row, end) >= 0;
    const fresh = [...now.values()];
    rows.value = [...placed, ...fresh.filter(isAfter).sort(order)];
    waiting.value = [...stillWaiting, ...fresh.filter((row) => !isAfter(row))];
    gone.value = stillGone;
    settled = false;
  }

  let fading: ReturnType<typeof setTimeout> | undefined;

  /** Marks rows that have come for a moment. */
  function mark(keys: readonly string[]): void {
    if (keys.length === 0) return;
    fresh.value = new Set([...fresh.value, ...keys]);
    clearTimeout(fading);
    fading = setTimeout(() => {
      fresh.value = new Set();
    }, freshMs);
  }

  /** The rows are in order, and all of them match. */
  let settled = true;

  let rereading: Promise<boolean> | undefined;
  let rereadingNext: Promise<boolean> | undefined;

  /**
   * Reads the rows that are loaded again, and what has come among them. While `held`, what is new waits, and no row moves. Returns
   * whether that was done.
   */
  async function again(held: boolean): Promise<boolean> {
    if (shown !== wanted || loading.peek()) return restart();
    // Of several that are wanted while one runs, one that follows it is enough.
    rereadingNext ??= Promise.resolve(rereading).then(() => {
      rereadingNext = undefined;
      rereading = rereadRows(held);
      return rereading;
    });
    return await rereadingNext;
  }

  async function rereadRows(held: boolean): Promise<boolean> {
    // A search that has begun since finds it all.
    if (shown !== wanted || loading.peek()) return true;
    const { signal: until } = ended;
    const order = compare(sort);
    const end = rows.peek().at(-1);
    /** Tells whether rows up to the last one are still to be read; rows of the same order follow each other by their ids. */
    const isBeforeEnd = (row: EventRow | undefined) =>
      row !== undefined &&
      end !== undefined &&
      (order(row, end) < 0 || (order(row, end) === 0 && !found.has(rowKey(end))));
    const most = rows.peek().length + newMax;
    const found = new Map<string, EventRow>();
    let last: EventRow | undefined;
    let cursor = "";
    try {
      renew();
      let count = 0;
      do {
        const limit = Math.min(
          pageMax,
          Math.max(cursor === "" ? firstPage : laterPages, rows.peek().length - found.size),
        );
        const asked = { ...query, sortBy: sortBy(sort), pageInput: { limit, cursor } };
        const { results, pageInfo } = await events.searchEvents({ query: asked }, { signal: until });
        if (until.aborted) return true;
        for (const row of rowsOf(results)) {
          found.set(rowKey(row), row);
          last = row;
        }
        cursor = pageInfo?.hasNext ? pageInfo.endCursor : "";
        count = Number(pageInfo?.totalCount ?? count);
      } while (cursor !== "" && found.size < most && isBeforeEnd(last));
      const to = last;
      // Of rows beyond those that were read nothing is known.
      const isRead = (row: EventRow) =>
        found.has(rowKey(row)) || cursor === "" || to === undefined || order(row, to) < 0;
      batch(() => {
        take([...found.values()], isRead, held);
        total.value = count;
        failure.value = undefined;
      });
      next = cursor === "" ? undefined : cursor;
      return true;
    } catch (error) {
      if (until.aborted || isCancelled(error)) return true;
      failure.value = failureOfReading(error);
      return false;
    }
  }

  /** Searches from the first page. Returns whether that was done. */
  async function restart(): Promise<boolean> {
    ended.abort();
    try {
      renew();
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
   * Reads these events again: those that match now are shown as they are now, others leave. While `held`, nothing comes, leaves
   * or moves. Returns whether that was done.
   */
  async function refresh(eventIds: readonly string[], held = false): Promise<boolean> {
    await rereading;
    const { signal: until } = ended;
    if (until.aborted) return true;
    if (eventIds.length > changedMax) return await again(held);
    const ids = create(ClauseSchema, { withIds: { ids: [...eventIds] } });
    const clause = query.clause === undefined ? ids : allOf([query.clause, ids]);
    const fields = shownFields ?? query.fields;
    const asked = { ...query, ...(fields && { fields }), clause, pageInput: { limit: pageMax } };
    try {
      const { results } = await events.searchEvents({ query: asked }, { signal: until });
      if (until.aborted) return true;
      const changed = new Set(eventIds);
      const order = compare(sort);
      const end = next === undefined ? undefined : rows.value.at(-1);
      // What lies beyond the pages that are loaded comes with its page.
      const found = rowsOf(results).filter((row) => end === undefined || order(row, end) <= 0);
      const before = matching();
      batch(() => {
        const known = new Set(rows.value.map(rowKey));
        take(found, ({ event }) => changed.has(event.id), held);
        if (!held) mark(found.map(rowKey).filter((key) => !known.has(key)));
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
    /** Rows that have come while `held`, and are shown by `release`. */
    waiting,
    /** Keys of rows that match no longer, and that `release` takes away. */
    gone,
    /** Keys of rows that have just come. */
    fresh,
    total,
    loading,
    failure,
    /** Tells whether `rows` has all that match. */
    complete: () => next === undefined,

    /** Finds what this query finds, from the first page. Where it throws, nothing is searched until the next query. */
    async find(newQuery: () => QueryInit, newSort: Sort, moreFields: readonly string[]): Promise<void> {
      ended.abort();
      keep();
      wanted = answerToQuery("events");
      sort = newSort;
      asking = newQuery;
      shownFields = [...always, ...moreFields].map((field) => ({ field }));
      await restart();
    },

    /** Reads the rows that are loaded with other fields from now on. */
    async show(moreFields: readonly string[], held: boolean): Promise<void> {
      shownFields = [...always, ...moreFields].map((field) => ({ field }));
      await refresh([...new Set(rows.peek().map(({ event }) => event.id))].slice(0, changedMax), held);
    },

    /** Reads the next page. While `held`, it goes on where a page has nothing that follows the rows: else no more would be asked for. */
    async more(held: boolean): Promise<void> {
      if (loadingMore || next === undefined) return;
      loadingMore = true;
      await rereading;
      const { signal: until } = ended;
      const { length } = rows.peek();
      while (next !== undefined && !until.aborted && (await load(next, held)) && rows.peek().length === length);
      loadingMore = false;
    },

    /** Shows the rows that wait, without those that are gone. */
    release(): void {
      if (settled) return;
      settled = true;
      batch(() => {
        rows.value = [...present(), ...waiting.value].sort(compare(sort));
        mark(waiting.value.map(rowKey));
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
