import { computed, effect, type Signal, signal, untracked, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { address, linkTo, listOf, listText, parameterOf, setParameters } from "../data/address.ts";
import { answered, useAnswer } from "../data/answer.ts";
import { serverAway } from "../data/calls.ts";
import { onNews } from "../data/live.ts";
import { useLoaded } from "../data/loaded.ts";
import { usePlace } from "../data/place.ts";
import { preference } from "../data/preferences.ts";
import { useWayBack } from "../data/way-back.ts";
import { HealthStrip } from "../deliveries/health.tsx";
import { useFocusKept } from "../ui/focus-kept.ts";
import { More } from "../ui/more.tsx";
import { narrow, wide } from "../ui/narrow.ts";
import { Doubt, Empty, Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { Table } from "../ui/table.tsx";
import { TimeRangeChoice } from "../ui/time-range.tsx";
import ui from "../ui/ui.module.css";
import { Actions } from "./actions.tsx";
import { AlertGroup } from "./alert-group.tsx";
import { ColumnChoice } from "./column-choice.tsx";
import { chosenColumns, columnsOf, columnsText, fieldsIn, sortable } from "./columns.tsx";
import { calledOf, sharedParts } from "./entity-names.ts";
import eventsLook from "./events.module.css";
import { Export, ExportProgress, useExport } from "./export.tsx";
import { countFilters, Facets } from "./facets.tsx";
import { groupingHere, writeUsualGrouping } from "./grouping.ts";
import { GroupChoice, Groups } from "./groups.tsx";
import { labelNames, learnLabelNames } from "./label-names.ts";
import { eventList } from "./list.ts";
import { changedMax } from "./list-reads.ts";
import { type EventRow, rowKey } from "./list-rows.ts";
import { MatchingActions } from "./matching-actions.tsx";
import { Overview } from "./overview.tsx";
import { ownFacets } from "./own-facets.ts";
import {
  answerToQuery,
  chosen as chosenOf,
  clauseText,
  displayed,
  narrowingCount,
  ownClause,
  queryOf,
  sort,
} from "./query.ts";
import { SavedFilters } from "./saved.tsx";
import { SearchField } from "./search-field.tsx";
import { tellingKeys, tellingLabels } from "./telling-labels.ts";

/** Time for which changes after the first one are gathered before the list asks for them. */
const gatherMs = 500;
const countAgainMs = 5000;
/** Delay after a failure before the list asks again. */
const askAgainMs = 5000;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Those without a status are open, too. */
const [noStatus, open] = [String(Status.DEFAULT), String(Status.OPEN)];

/** The fields of rows beyond those that every list shows. Reads signals. */
const fieldsOf = () => [...fieldsIn(chosenColumns()), ...tellingKeys().map((key) => `metadataFields.${key}`)];

/** The list of the address, kept current: the first change is asked for at once, those after it together. Rows stay in place while the person reads. */
function useList(reading: Signal<boolean>) {
  const list = useMemo(() => eventList(() => reading.peek()), []);
  const news = useMemo(() => signal(0), []);
  useEffect(() => {
    const fields = computed(() => fieldsIn(chosenColumns()).toSorted().join());
    const endFinding = effect(() => {
      fields.value;
      void list.find(queryOf, sort.value, untracked(fieldsOf));
    });
    const again = () => untracked(() => void list.again());
    let named = labelNames.peek();
    let facets = ownFacets().join();
    const endNaming = effect(() => {
      const now = ownFacets().join();
      if (labelNames.value === named && now === facets) return;
      named = labelNames.value;
      facets = now;
      untracked(() => void list.show(fieldsOf()));
    });
    const changed = new Set<string>();
    let isAsking = false;
    let counting: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    // One more than the list asks for one by one is enough: it then reads all its rows.
    const keep = (ids: readonly string[]) => {
      for (const id of ids) if (changed.size <= changedMax) changed.add(id);
    };
    const ask = async () => {
      if (isAsking) return;
      isAsking = true;
      while (changed.size > 0 && !ended) {
        const ids = [...changed];
        changed.clear();
        counting ??= setTimeout(() => {
          counting = undefined;
          news.value += 1;
        }, countAgainMs);
        const [isDone] = await Promise.all([list.refresh(ids), sleep(gatherMs)]);
        if (isDone) continue;
        keep(ids);
        await sleep(askAgainMs);
      }
      isAsking = false;
    };
    const endNews = onNews((heard) => {
      if ("missed" in heard) {
        again();
        news.value += 1;
        return;
      }
      keep(heard.eventIds);
      void ask();
    });
    const endReading = effect(() => {
      if (!reading.value) untracked(list.release);
    });
    let wasAway = false;
    const endReturns = effect(() => {
      const away = serverAway.value;
      const back = wasAway && !away;
      wasAway = away;
      if (list.failure.value === undefined || away) return;
      if (back) again();
      else if (list.failure.value.away) {
        // Another call may have found the server meanwhile, so that no return will be seen.
        const asking = setTimeout(again, askAgainMs);
        return () => clearTimeout(asking);
      }
    });
    return () => {
      ended = true;
      list.keep();
      endFinding();
      endNaming();
      endReading();
      endReturns();
      endNews();
      clearTimeout(counting);
    };
  }, []);
  return { list, news };
}

/** Much of it: it comes after the list. */
const loadEditor = () => import("../clause/editor.tsx");

/** State of the filters; without a choice they are open on a wide page. */
const filtersOpen = preference<"" | "open" | "closed">("filters", "");

/** The events of the address. The link of a group's message, which names the group, leads on to its list. */
export function EventsScreen() {
  const groupKey = parameterOf("groupKey");
  return groupKey === null ? <EventList /> : <AlertGroup groupKey={groupKey} />;
}

function EventList() {
  useWayBack("Events");
  const reading = useSignal(false);
  const grid = useRef<HTMLElement>(null);
  const section = useRef<HTMLElement>(null);
  useFocusKept(section, () => grid.current);
  const { list, news } = useList(reading);
  const counts = useAnswer(
    (until) => {
      news.value;
      return countFilters(until);
    },
    undefined,
    "counts",
    answerToQuery,
  );
  const counted = answered(counts.value);
  const selected = usePlace<ReadonlySet<string>>("selected events", new Set());
  const active = usePlace("current event", "");
  // Until a person opens or closes it, the editor is open where there are conditions.
  const opened = useSignal<boolean | undefined>(undefined);
  const editing = opened.value ?? ownClause.value !== undefined;
  const withFilters = filtersOpen.value === "" ? wide.value : filtersOpen.value === "open";
  const rows = list.rows.value;
  const gone = list.gone.value;
  const fresh = list.fresh.value;
  const grouping = groupingHere();
  useLayoutEffect(writeUsualGrouping);
  const filtered = [...address.value.parameters.keys()].some((parameter) => !displayed.has(parameter));
  const columns = chosenColumns();
  const wideOnes = listOf("wide");
  const shown = useColumns(rows, columns, wideOnes);
  const chosen =
    grouping !== undefined || selected.value.size === 0 ? [] : rows.filter((row) => selected.value.has(rowKey(row)));
  // All that is found, loaded or not: until another row is selected, or another query asked.
  const found = useSignal<{ selected: ReadonlySet<string>; query: string } | undefined>(undefined);
  const here = address.value.parameters.toString();
  const withFound = chosen.length > 0 && found.value?.selected === selected.value && found.value.query === here;
  // The selection that held every loaded row: it still offers *Select all* after new events arrive.
  const selectedAll = useRef<ReadonlySet<string>>(undefined);
  if (chosen.length > 0 && chosen.length === rows.length) selectedAll.current = selected.value;
  const offered = chosen.length > 0 && selectedAll.current === selected.value && !withFound;
  const editor = useLoaded(loadEditor, editing || ownClause.value !== undefined);
  const conditions = ownClause.value ? (editor?.countConditions(ownClause.value) ?? 0) : 0;
  const filtering = narrowingCount();
  const { key, descending } = sort.value;
  const errors = clauseErrors(list.failure.value?.fields ?? []);
  const total = Math.max(list.total.value, rows.length - gone.size + list.waiting.value.length);
  const unknown = list.failure.value !== undefined && rows.length === 0;
  const count = unknown ? "" : `${total.toLocaleString("en")} ${total === 1 ? "occurrence" : "occurrences"}`;
  /** Reads changed rows again. Where the current one alone was changed and moves, the one that follows it becomes current. */
  const reread = async (changed: readonly EventRow[]) => {
    const alone = selected.value.size === 0 && changed.length === 1 && changed.map(rowKey)[0] === active.value;
    const at = rows.findIndex((row) => rowKey(row) === active.value);
    await list.refresh([...new Set(changed.map(({ event }) => event.id))], () => false);
    const now = list.rows.peek();
    const next = now[Math.min(at, now.length - 1)];
    if (alone && next !== undefined) active.value = rowKey(next);
  };
  const exporting = useExport();
  const seldom = (
    <>
      <ColumnChoice
        columns={columns}
        wide={wideOnes}
        change={(next, widened) =>
          setParameters({
            columns: columnsText(next),
            wide: listText(widened.filter((column) => next.includes(column))),
          })
        }
      />
      <Export state={exporting} query={queryOf} sort={() => sort.value} columns={fieldsIn(columns)} />
    </>
  );
  const often = (
    <>
      <TimeRangeChoice
        any="Any time"
        value={address.value.parameters.get("range") ?? ""}
        change={(range) => setParameters({ range })}
      />
      <GroupChoice />
      <SavedFilters />
      <button
        type="button"
        aria-expanded={editing}
        onClick={() => {
          opened.value = !editing;
        }}
      >
        Conditions{conditions > 0 ? ` (${conditions})` : ""}
      </button>
    </>
  );
  return (
    <div class={ui.screen}>
      <ScreenHead
        title="Events"
        count={list.loading.value ? "Searching…" : count}
        tools={
          <>
            <SearchField />
            <button
              type="button"
              aria-expanded={withFilters}
              onClick={() => {
                filtersOpen.value = withFilters ? "closed" : "open";
              }}
            >
              Filters{filtering > 0 ? ` (${filtering})` : ""}
            </button>
            {!narrow.value && often}
            <ExportProgress state={exporting} />
            <More label="More of the list">
              {narrow.value && often}
              {seldom}
            </More>
          </>
        }
      />
      {editing && editor && (
        <editor.ClauseEditor
          of="event"
          clause={ownClause.value}
          errors={errors}
          apply={(clause) => setParameters({ where: clause && clauseText(clause) })}
        />
      )}
      <Doubt hint={list.hint.value} />
      <HealthStrip />
      <Overview counts={counted} news={news} />
      <div class={withFilters ? `${ui.columns} ${eventsLook.withFilters}` : ui.columns}>
        <section ref={section} aria-label="List of events" class={eventsLook.list}>
          <Problem
            failure={errors.length > 0 || grouping !== undefined ? undefined : list.failure.value}
            again={() => void list.again()}
          />
          <p class={eventsLook.news} role="status">
            {list.waiting.value.length > 0 && (
              <button
                type="button"
                class={ui.primary}
                onClick={() => {
                  list.release();
                  grid.current?.scrollTo({ top: 0 });
                  grid.current?.focus();
                }}
              >
                {list.waiting.value.length.toLocaleString("en")} new
              </button>
            )}
          </p>
          {grouping !== undefined ? (
            // Groups of another kind do not stay in sight: their actions would be of this one.
            <Groups key={grouping} grouping={grouping} nothing={<Nothing filtered={filtered} />} />
          ) : rows.length === 0 && !list.loading.value && list.failure.value === undefined ? (
            <Nothing filtered={filtered} />
          ) : (
            <Table
              label="Events"
              rows={rows}
              columns={shown}
              rowKey={rowKey}
              hrefOf={({ occurrence }) => linkTo(["occurrences", occurrence.id])}
              selected={selected}
              active={active}
              element={grid}
              reading={reading}
              sort={{ key, descending }}
              sortable={sortable}
              sortBy={(by) => setParameters({ sort: by === key && descending ? by : `-${by}` })}
              total={Math.max(total + gone.size, rows.length)}
              more={() => void list.more()}
              dim={({ occurrence }) => occurrence.acknowledged ?? false}
              gone={(row) => gone.has(rowKey(row))}
              fresh={(row) => fresh.has(rowKey(row))}
            />
          )}
          {/* Below the list: no row moves when the first one is selected. */}
          <div class={eventsLook.bar}>
            {chosen.length > 0 && (
              <>
                <span>{(withFound ? total : chosen.length).toLocaleString("en")} selected</span>
                <button
                  type="button"
                  class={ui.plain}
                  onClick={() => {
                    selected.value = new Set();
                  }}
                >
                  Select none
                </button>
              </>
            )}
            {offered && total > chosen.filter((row) => !gone.has(rowKey(row))).length && (
              <button
                type="button"
                onClick={() => {
                  found.value = { selected: selected.value, query: here };
                }}
              >
                Select all {total.toLocaleString("en")} found
              </button>
            )}
            {withFound && (
              <MatchingActions
                count={total}
                of="found"
                letters
                query={queryOf}
                changed={() => {
                  selected.value = new Set();
                  void list.again().then(list.release);
                  news.value += 1;
                }}
              />
            )}
            <Actions
              main
              rows={withFound ? [] : chosen}
              current={
                grouping === undefined && !withFound ? rows.find((row) => rowKey(row) === active.value) : undefined
              }
              reread={reread}
            />
          </div>
        </section>
        {withFilters && (
          <section aria-label="Filters" class={`${ui.filters} ${eventsLook.filters}`} data-filters>
            <Facets counts={counted} />
          </section>
        )}
      </div>
    </div>
  );
}

/** The columns of these rows; the same ones as long as nothing of them changes, so that rows are not drawn again. */
function useColumns(rows: readonly EventRow[], more: readonly string[], wide: readonly string[]) {
  const parts = useMemo(() => sharedParts(rows.map(({ event }) => calledOf(event))), [rows]);
  const keys = tellingKeys();
  const { labels, alike } = useMemo(() => tellingLabels(rows, keys), [rows, keys.join()]);
  useEffect(() => {
    if (alike) learnLabelNames();
  }, [alike]);
  const withStatus = new Set(chosenOf("status").map((status) => (status === noStatus ? open : status))).size !== 1;
  return useMemo(
    () => columnsOf(more, wide, { parts, labels, withStatus }),
    [more.join(), wide.join(), parts.start, parts.end, JSON.stringify([...labels]), withStatus],
  );
}

/** Returns the server's errors in the clause of the address, by paths below it; the clause may be part of an `and` with other filters. */
function clauseErrors(fields: readonly { field: string; description: string }[]) {
  return fields
    .filter(({ field }) => field.startsWith("query.clause"))
    .map(({ field, description }) => {
      const inner = field.replace(/^query\.clause/, "");
      const together = queryOf().clause !== ownClause.value;
      return { field: together ? inner.replace(/^\.and\.clauses\[0\]/, "") : inner, description };
    });
}

function Nothing({ filtered }: { filtered: boolean }) {
  return (
    <Empty title={filtered ? "No occurrence matches these filters." : "Nothing is open."}>
      {filtered ? (
        <p>
          <a href={linkTo(["events"])}>Remove the filters</a>, or{" "}
          <a href={linkTo(["events"], { status: "any" })}>show events of any status</a>.
        </p>
      ) : (
        <p>
          Events appear here as they are sent: by agents and Alertmanager clients, by OpenTelemetry, or by a{" "}
          <code>POST /v1/data-receiver/events</code>. <a href={linkTo(["settings", "send"])}>Send the first data</a>, or{" "}
          <a href={linkTo(["events"], { status: "any" })}>show closed ones</a>.
        </p>
      )}
    </Empty>
  );
}
