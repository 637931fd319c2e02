import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { narrow } from "./narrow.ts";

/** A column: `width` is a track of CSS grid. On a narrow page a row has two lines, and `line` says in which the cell is. */
export interface Column<T> {
  readonly key: string;
  readonly label: string;
  readonly width: string;
  readonly line?: 1 | 2;
  readonly end?: boolean;
  cell(row: T): ComponentChildren;
  /** The text that hides when the cell is too narrow. */
  title?(row: T): string;
}

interface TableProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  rowKey(row: T): string;
  /** Opens a row: Enter, or a click on it. */
  open?: (row: T) => void;
  /** Keys of the rows that are selected. Absent: rows cannot be. */
  readonly selected?: Signal<ReadonlySet<string>>;
  /** What sorts the list, and how to sort it by a column. */
  readonly sort?: { readonly key: string; readonly descending: boolean };
  sortBy?: (key: string) => void;
  /** Columns that can be sorted by. */
  readonly sortable?: readonly string[];
  /** How many rows there are with those that are not loaded. */
  readonly total?: number;
  /** Loads more: called when the last rows come into sight. */
  more?: () => void;
  /** Rows stand out: what they say is worse. */
  tone?: (row: T) => string;
}

const beyond = 6;

/** A table that renders the rows in sight alone. By keyboard: arrows, Page, Home, End; Space selects, Enter opens. */
export function Table<T>(props: TableProps<T>) {
  const { label, rows, columns, rowKey, open, selected, total = rows.length, more, tone } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  const active = useSignal(0);
  const anchor = useRef(0);
  const rowHeight = narrow.value ? 58 : 32;
  const headHeight = narrow.value ? 0 : 29;

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const sizes = new ResizeObserver(() => {
      height.value = element.clientHeight - headHeight;
    });
    sizes.observe(element);
    return () => sizes.disconnect();
  }, [headHeight]);

  const first = Math.max(0, Math.floor(top.value / rowHeight) - beyond);
  const last = Math.min(rows.length, Math.ceil((top.value + height.value) / rowHeight) + beyond);
  useLayoutEffect(() => {
    if (more && last >= rows.length - 50 && rows.length < total) more();
  }, [last, rows.length, total]);

  const current = Math.min(active.value, rows.length - 1);
  const toggle = (at: number, range: boolean) => {
    if (selected === undefined) return;
    const keys = new Set(selected.value);
    const [from, to] = range ? [Math.min(anchor.current, at), Math.max(anchor.current, at)] : [at, at];
    const chosen = rows.slice(from, to + 1).map(rowKey);
    const add = range || !keys.has(chosen[0] ?? "");
    for (const key of chosen) keys[add ? "add" : "delete"](key);
    anchor.current = at;
    selected.value = keys;
  };
  const moveTo = (at: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, at));
    active.value = next;
    const element = scroller.current;
    if (element === null) return;
    if (next * rowHeight < element.scrollTop) element.scrollTop = next * rowHeight;
    const under = (next + 1) * rowHeight - height.value;
    if (under > element.scrollTop) element.scrollTop = under;
  };
  const press = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height.value / rowHeight) - 1);
    const row = rows[current];
    const moves: Record<string, () => void> = {
      ArrowDown: () => moveTo(current + 1),
      ArrowUp: () => moveTo(current - 1),
      PageDown: () => moveTo(current + page),
      PageUp: () => moveTo(current - page),
      Home: () => moveTo(0),
      End: () => moveTo(rows.length - 1),
      " ": () => toggle(current, event.shiftKey),
      Enter: () => row !== undefined && open?.(row),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };

  const tracks = `${selected ? "28px " : ""}${columns.map(({ width }) => width).join(" ")}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: only the rows in sight exist, which a table element cannot say
    <div
      class={narrow.value ? "table narrow" : "table"}
      role="grid"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-multiselectable={selected ? true : undefined}
      tabIndex={0}
      aria-activedescendant={current >= first && current < last ? `${id}-${current}` : undefined}
      onKeyDown={press}
      ref={scroller}
      onScroll={({ currentTarget }) => {
        top.value = currentTarget.scrollTop;
      }}
    >
      <Head {...props} tracks={tracks} />
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      <div class="table-body" role="rowgroup" style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(first, last).map((row, offset) => {
          const at = first + offset;
          const key = rowKey(row);
          const chosen = selected?.value.has(key) ?? false;
          return (
            // biome-ignore lint/a11y/useSemanticElements: as above
            // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active row
            // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys
            <div
              key={key}
              id={`${id}-${at}`}
              role="row"
              aria-rowindex={at + 2}
              aria-selected={selected ? chosen : undefined}
              class={`row${at === current ? " current" : ""}${chosen ? " chosen" : ""}${tone ? ` ${tone(row)}` : ""}`}
              style={{
                transform: `translateY(${at * rowHeight}px)`,
                gridTemplateColumns: tracks,
                height: `${rowHeight}px`,
              }}
              onClick={(event) => {
                active.value = at;
                const target = event.target as Element;
                if (target.closest(".pick")) toggle(at, event.shiftKey);
                else if (!target.closest("a, button")) open?.(row);
              }}
            >
              {selected && (
                // biome-ignore lint/a11y/useSemanticElements: as above
                // biome-ignore lint/a11y/useFocusableInteractive: as above
                <span class="cell pick" role="gridcell">
                  <span class="tick" aria-hidden="true">
                    {chosen ? "✓" : ""}
                  </span>
                </span>
              )}
              {columns.map((column) => (
                // biome-ignore lint/a11y/useSemanticElements: as above
                // biome-ignore lint/a11y/useFocusableInteractive: as above
                <span
                  key={column.key}
                  role="gridcell"
                  class={`cell line-${column.line ?? 2}${column.end ? " end" : ""}`}
                  title={column.title?.(row)}
                >
                  {column.cell(row)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** The names of the columns; a press on one sorts by it. */
function Head<T>({
  columns,
  sort,
  sortBy,
  sortable,
  selected,
  rows,
  rowKey,
  tracks,
}: TableProps<T> & { tracks: string }) {
  const all = selected !== undefined && rows.length > 0 && rows.every((row) => selected.value.has(rowKey(row)));
  return (
    // biome-ignore lint/a11y/useSemanticElements: only the rows in sight exist, which a table element cannot say
    <div class="table-head" role="rowgroup">
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus */}
      <div class="row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: tracks }}>
        {selected && (
          // biome-ignore lint/a11y/useSemanticElements: as above
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <span class="cell pick" role="columnheader">
            <input
              type="checkbox"
              aria-label="Select all rows that are loaded"
              checked={all}
              onChange={() => {
                selected.value = all ? new Set() : new Set(rows.map(rowKey));
              }}
            />
          </span>
        )}
        {columns.map(({ key, label, end }) => {
          const sorted = sort?.key === key;
          const direction = sort?.descending ? "descending" : "ascending";
          return (
            // biome-ignore lint/a11y/useSemanticElements: as above
            // biome-ignore lint/a11y/useFocusableInteractive: as above
            <span
              key={key}
              role="columnheader"
              class={end ? "cell end" : "cell"}
              aria-sort={sorted ? direction : undefined}
            >
              {sortBy && sortable?.includes(key) ? (
                <button type="button" onClick={() => sortBy(key)}>
                  {label}
                  <span aria-hidden="true">{sorted ? (sort?.descending ? " ↓" : " ↑") : ""}</span>
                </button>
              ) : (
                label
              )}
            </span>
          );
        })}
      </div>
    </div>
  );
}
