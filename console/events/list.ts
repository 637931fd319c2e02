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
/** The shortest time between two counts of what the query finds. */
const countAgainMs = 1000;
/** Most changed events that the list reads again one by one; beyond that it reads the first page. */
export const changedMax = 500;

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
  const total = signal(0);
  const loading = signal(true);
  const failure = signal<Failure | undefined>(undefined);
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

  /** Keeps what is shown for a person who comes back while the server is away. */
  function keep(): void {
    if (shown === undefined) return;
    const all = [...rows.peek(), ...waiting.peek()].sort(compare(sort));
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
    });
  }

  /** Shows nothing: what was found is no answer to a query that cannot be asked. */
  function empty(): void {
    next = undefined;
    shown = undefined;
    batch(() => {
      rows.value = [];
      waiting.value = [];
      total.value = 0;
    });
  }

  /** Reads the page at `cursor` and adds it; the first one replaces what is there. Returns whether that was done. */
  async function load(cursor: string): Promise<boolean> {
    const { signal: until } = ended;
    if (cursor === "" && shownFields !== undefined) {
      query = { ...query, fields: shownFields };
      shownFields = undefined;
    }
    try {
      const pageInput = { limit: cursor === "" ? firstPage : laterPages, cursor };
      const asked = { ...query, sortBy: sortBy(sort), pageInput };
      const { results, pageInfo } = await events.searchEvents({ query: asked }, { signal: until });
      if (until.aborted) return true;
      const known = new Set(cursor === "" ? [] : rows.value.map(rowKey));
      const added = rowsOf(results).filter((row) => !known.has(rowKey(row)));
      const lacking = shownFields === undefined ? [] : results.map(({ id }) => id);
      // A search places an event where its first occurrence belongs: here each occurrence is a row.
      const order = compare(sort);
      rows.value = cursor === "" ? added.sort(order) : merge(rows.value, added.sort(order), order);
      next = pageInfo?.hasNext ? pageInfo.endCursor : undefined;
      if (cursor === "") shown = wanted;
      if (cursor === "") waiting.value = [];
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
   * Reads these events again: those that match now are shown as they are now, others leave. While `held`, what is new waits, and
   * no row moves. Returns whether that was done.
   */
  async function refresh(eventIds: readonly string[], held = false): Promise<boolean> {
    const { signal: until } = ended;
    if (until.aborted) return true;
    if (eventIds.length > changedMax) return await load("");
    const ids = create(ClauseSchema, { withIds: { ids: [...eventIds] } });
    const clause = query.clause === undefined ? ids : allOf([query.clause, ids]);
    const fields = shownFields ?? query.fields;
    const asked = { ...query, ...(fields && { fields }), clause, pageInput: { limit: 1000 } };
    try {
      const { results } = await events.searchEvents({ query: asked }, { signal: until });
      if (until.aborted) return true;
      const changed = new Set(eventIds);
      const order = compare(sort);
      const end = next === undefined ? undefined : rows.value.at(-1);
      // What lies beyond the pages that are loaded comes with its page.
      const found = rowsOf(results).filter((row) => end === undefined || order(row, end) <= 0);
      const kept = rows.value.filter(({ event }) => !changed.has(event.id));
      const stillWaiting = waiting.value.filter(({ event }) => !changed.has(event.id));
      const before = rows.value.length + waiting.value.length;
      batch(() => {
        if (held) {
          const now = new Map(found.map((row) => [rowKey(row), row]));
          rows.value = rows.value.flatMap((row) => {
            const known = now.get(rowKey(row));
            now.delete(rowKey(row));
            return changed.has(row.event.id) ? (known ?? []) : row;
          });
          waiting.value = [...stillWaiting, ...now.values()];
        } else {
          rows.value = merge(kept, found.sort(order), order);
          waiting.value = stillWaiting;
        }
        if (end === undefined) total.value += rows.value.length + waiting.value.length - before;
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
      shownFields = undefined;
      try {
        query = { ...newQuery(), fields: [...always, ...moreFields].map((field) => ({ field })) };
      } catch (error) {
        batch(() => {
          empty();
          loading.value = false;
          failure.value = failureOfReading(error);
        });
        return;
      }
      ended = new AbortController();
      loading.value = true;
      await load("");
    },

    /** Reads the rows that are loaded with other fields from now on. */
    async show(moreFields: readonly string[], held: boolean): Promise<void> {
      shownFields = [...always, ...moreFields].map((field) => ({ field }));
      await refresh([...new Set(rows.peek().map(({ event }) => event.id))].slice(0, changedMax), held);
    },

    /** Reads the next page. */
    async more(): Promise<void> {
      if (loadingMore || next === undefined) return;
      loadingMore = true;
      await load(next);
      loadingMore = false;
    },

    /** Shows the rows that wait. */
    release(): void {
      if (waiting.peek().length === 0) return;
      batch(() => {
        rows.value = [...rows.value, ...waiting.value].sort(compare(sort));
        waiting.value = [];
      });
    },

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
