import { effect, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { address, goTo, linkTo, listOf, listText, setParameters } from "../frame/address.ts";
import { onNews } from "../frame/live.ts";
import { useAnswer } from "../parts/answer.ts";
import { conditionCount, draftOf } from "../parts/clause/draft.ts";
import { ClauseEditor } from "../parts/clause/editor.tsx";
import { narrow } from "../parts/narrow.ts";
import { Empty, Problem } from "../parts/problem.tsx";
import { Table } from "../parts/table.tsx";
import { TimeRangeChoice } from "../parts/time-range.tsx";
import { Actions } from "./actions.tsx";
import { ColumnChoice } from "./column-choice.tsx";
import { columnsOf, sortable } from "./columns.tsx";
import { Export } from "./export.tsx";
import { countFilters, Facets } from "./facets.tsx";
import { eventList, rowKey } from "./list.ts";
import { clauseText, ownClause, queryOf, sort } from "./query.ts";
import { SavedFilters } from "./saved.tsx";
import { severityOf } from "./words.tsx";

/** How long what changed is gathered, after the first change, before the list asks for it. */
const gatherMs = 500;
const countAgainMs = 5000;

/** The list of the address, kept current: the first change is asked for at once, those after it together. */
function useList() {
  const list = useMemo(eventList, []);
  const news = useMemo(() => signal(0), []);
  useEffect(() => {
    const endFinding = effect(() => {
      void list.find(queryOf(), sort.value, listOf("columns"));
    });
    const changed = new Set<string>();
    let gathering: ReturnType<typeof setTimeout> | undefined;
    let counting: ReturnType<typeof setTimeout> | undefined;
    const ask = () => {
      gathering = undefined;
      if (changed.size === 0) return;
      const ids = [...changed];
      changed.clear();
      void list.refresh(ids);
      gathering = setTimeout(ask, gatherMs);
      counting ??= setTimeout(() => {
        counting = undefined;
        news.value += 1;
      }, countAgainMs);
    };
    const endNews = onNews((heard) => {
      if ("missed" in heard) {
        void list.find(queryOf(), sort.peek(), listOf("columns"));
        news.value += 1;
        return;
      }
      for (const id of heard.eventIds) changed.add(id);
      if (gathering === undefined) ask();
    });
    return () => {
      endFinding();
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
  const editing = useSignal(ownClause.value !== undefined);
  const rows = list.rows.value;
  const columns = listOf("columns");
  const chosen = selected.value.size === 0 ? [] : rows.filter((row) => selected.value.has(rowKey(row)));
  const conditions = ownClause.value ? conditionCount(draftOf(ownClause.value)) : 0;
  const { key, descending } = sort.value;
  const facets = <Facets counts={counts.value.value} />;
  const errors = clauseErrors(list.failure.value?.fields ?? []);
  const total = Math.max(list.total.value, rows.length);
  return (
    <div class="screen events">
      <div class="screen-head">
        <h1>Events</h1>
        <p class="count" role="status">
          {list.loading.value
            ? "Searching…"
            : `${total.toLocaleString("en")} ${total === 1 ? "occurrence" : "occurrences"}`}
        </p>
        <div class="tools">
          <TimeRangeChoice
            any="Any time"
            value={address.value.parameters.get("range") ?? ""}
            change={(range) => setParameters({ range })}
          />
          <SavedFilters />
          <button
            type="button"
            aria-expanded={editing.value}
            onClick={() => {
              editing.value = !editing.value;
            }}
          >
            Conditions{conditions > 0 ? ` (${conditions})` : ""}
          </button>
          <ColumnChoice columns={columns} change={(next) => setParameters({ columns: listText(next) })} />
          <Export query={queryOf} sort={() => sort.value} columns={columns} />
        </div>
      </div>
      {editing.value && (
        <ClauseEditor
          of="event"
          clause={ownClause.value}
          errors={errors}
          apply={(clause) => setParameters({ where: clause && clauseText(clause) })}
        />
      )}
      <div class="columns">
        {narrow.value ? (
          <details class="filters">
            <summary>Filters</summary>
            {facets}
          </details>
        ) : (
          <section aria-label="Filters" class="filters">
            {facets}
          </section>
        )}
        <section aria-label="List of events" class="list">
          <div class="bar">
            {chosen.length > 0 && (
              <>
                <span>{chosen.length} selected</span>
                <button
                  type="button"
                  class="plain"
                  onClick={() => {
                    selected.value = new Set();
                  }}
                >
                  Select none
                </button>
              </>
            )}
            <Actions rows={chosen} />
          </div>
          <Problem
            failure={errors.length > 0 ? undefined : list.failure.value}
            again={() => void list.find(queryOf(), sort.value, columns)}
          />
          {rows.length === 0 && !list.loading.value && list.failure.value === undefined ? (
            <Nothing filtered={address.value.parameters.size > 0} />
          ) : (
            <Table
              label="Events"
              rows={rows}
              columns={columnsOf(columns)}
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

/** What the server found wrong with the clause of the address, by paths below it; it may stand in an `and` with other filters. */
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
          <code>POST /v1/data-receiver/events</code>.{" "}
          <a href={linkTo(["events"], { status: "any" })}>Show closed ones</a>.
        </p>
      )}
    </Empty>
  );
}
