import { effect, signal, untracked, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { conditionCount } from "../clause/draft.ts";
import { ClauseEditor } from "../clause/editor.tsx";
import { searchClauses } from "../clause/search-clause.ts";
import { address, goTo, linkTo, listOf, listText, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { serverAway } from "../data/calls.ts";
import { onNews } from "../data/live.ts";
import { narrow } from "../ui/narrow.ts";
import { Empty, Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { Table } from "../ui/table.tsx";
import { TimeRangeChoice } from "../ui/time-range.tsx";
import ui from "../ui/ui.module.css";
import { Actions } from "./actions.tsx";
import { ColumnChoice } from "./column-choice.tsx";
import { columnsOf, sortable } from "./columns.tsx";
import eventsLook from "./events.module.css";
import { Export } from "./export.tsx";
import { countFilters, Facets } from "./facets.tsx";
import { changedMax, eventList, rowKey } from "./list.ts";
import { clauseText, ownClause, queryOf, sort } from "./query.ts";
import { SavedFilters } from "./saved.tsx";
import { severityOf } from "./words.tsx";

/** How long what changed is gathered, after the first change, before the list asks for it. */
const gatherMs = 500;
const countAgainMs = 5000;
/** How long after a failure the list asks again for what changed. */
const askAgainMs = 5000;

/** The list of the address, kept current: the first change is asked for at once, those after it together. */
function useList() {
  const list = useMemo(eventList, []);
  const news = useMemo(() => signal(0), []);
  useEffect(() => {
    const find = () => void list.find(queryOf, sort.value, listOf("columns"));
    const endFinding = effect(find);
    const changed = new Set<string>();
    let gathering: ReturnType<typeof setTimeout> | undefined;
    let counting: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    // One more than the list asks for one by one is enough: it then reads the first page.
    const keep = (ids: readonly string[]) => {
      for (const id of ids) if (changed.size <= changedMax) changed.add(id);
    };
    const ask = () => {
      gathering = undefined;
      if (changed.size === 0) return;
      const ids = [...changed];
      changed.clear();
      gathering = setTimeout(ask, gatherMs);
      void list.refresh(ids).then((done) => {
        if (done || ended) return;
        keep(ids);
        clearTimeout(gathering);
        gathering = setTimeout(ask, askAgainMs);
      });
      counting ??= setTimeout(() => {
        counting = undefined;
        news.value += 1;
      }, countAgainMs);
    };
    const endNews = onNews((heard) => {
      if ("missed" in heard) {
        find();
        news.value += 1;
        return;
      }
      keep(heard.eventIds);
      if (gathering === undefined) ask();
    });
    let wasAway = false;
    const endReturns = effect(() => {
      const away = serverAway.value;
      if (wasAway && !away && list.failure.peek() !== undefined) untracked(find);
      wasAway = away;
    });
    return () => {
      ended = true;
      endFinding();
      endReturns();
      endNews();
      clearTimeout(gathering);
      clearTimeout(counting);
    };
  }, []);
  return { list, news };
}

export function EventsScreen() {
  const { list, news } = useList();
  const counts = useAnswer((until) => {
    news.value;
    return countFilters(until);
  });
  const selected = useSignal<ReadonlySet<string>>(new Set());
  // Until a person opens or closes it, the editor is open where there are conditions.
  const opened = useSignal<boolean | undefined>(undefined);
  const editing = opened.value ?? ownClause.value !== undefined;
  const rows = list.rows.value;
  const columns = listOf("columns");
  const shown = useMemo(() => columnsOf(columns), [columns.join()]);
  const chosen = selected.value.size === 0 ? [] : rows.filter((row) => selected.value.has(rowKey(row)));
  const conditions = ownClause.value ? conditionCount(searchClauses, ownClause.value) : 0;
  const { key, descending } = sort.value;
  const facets = <Facets counts={counts.value.value} />;
  const errors = clauseErrors(list.failure.value?.fields ?? []);
  const total = Math.max(list.total.value, rows.length);
  const unknown = list.failure.value !== undefined && rows.length === 0;
  const count = unknown ? "" : `${total.toLocaleString("en")} ${total === 1 ? "occurrence" : "occurrences"}`;
  return (
    <div class={ui.screen}>
      <ScreenHead
        title="Events"
        count={list.loading.value ? "Searching…" : count}
        tools={
          <>
            <TimeRangeChoice
              any="Any time"
              value={address.value.parameters.get("range") ?? ""}
              change={(range) => setParameters({ range })}
            />
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
            <ColumnChoice columns={columns} change={(next) => setParameters({ columns: listText(next) })} />
            <Export query={queryOf} sort={() => sort.value} columns={columns} />
          </>
        }
      />
      {editing && (
        <ClauseEditor
          of="event"
          clause={ownClause.value}
          errors={errors}
          apply={(clause) => setParameters({ where: clause && clauseText(clause) })}
        />
      )}
      <div class={ui.columns}>
        {narrow.value ? (
          <details class={ui.filters} data-filters>
            <summary>Filters</summary>
            {facets}
          </details>
        ) : (
          <section aria-label="Filters" class={ui.filters} data-filters>
            {facets}
          </section>
        )}
        <section aria-label="List of events" class={eventsLook.list}>
          <div class={eventsLook.bar}>
            {chosen.length > 0 && (
              <>
                <span>{chosen.length} selected</span>
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
            <Actions
              rows={chosen}
              reread={(changed) => list.refresh([...new Set(changed.map(({ event }) => event.id))])}
            />
          </div>
          <Problem
            failure={errors.length > 0 ? undefined : list.failure.value}
            again={() => void list.find(queryOf, sort.value, columns)}
          />
          {rows.length === 0 && !list.loading.value && list.failure.value === undefined ? (
            <Nothing filtered={address.value.parameters.size > 0} />
          ) : (
            <Table
              label="Events"
              rows={rows}
              columns={shown}
              rowKey={rowKey}
              open={({ occurrence }) => goTo(linkTo(["occurrences", occurrence.id]))}
              selected={selected}
              sort={{ key, descending }}
              sortable={sortable}
              sortBy={(by) => setParameters({ sort: by === key && descending ? by : `-${by}` })}
              total={total}
              more={() => void list.more()}
              tone={({ occurrence }) => severityOf(occurrence.severity).tone}
            />
          )}
        </section>
      </div>
    </div>
  );
}

/** What the server found wrong with the clause of the address, by paths below it; it may be part of an `and` with other filters. */
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
