import { type Signal, useSignal } from "@preact/signals";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Column } from "./column.ts";
import { narrow } from "./narrow.ts";
import tableLook from "./table.module.css";
import { TableHead, TableRow } from "./table-rows.tsx";

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
  const {
    label,
    rows,
    columns,
    rowKey,
    selected,
    total = rows.length,
    more,
    tone,
    sort,
    sortBy,
    sortable = [],
  } = props;
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

  const first = Math.max(0, top.value - beyond);
  const last = Math.min(rows.length, top.value + Math.ceil(height.value / rowHeight) + 2 * beyond);
  useLayoutEffect(() => {
    if (more && last >= rows.length - 50 && rows.length < total) more();
  }, [last, rows.length, total]);

  const current = Math.min(active.value, rows.length - 1);
  const tracks = `${selected ? "28px " : ""}${columns.map(({ width }) => width).join(" ")}`;
  const page = Math.max(1, Math.floor(height.value / rowHeight) - 1);
  const moveTo = (at: number) => {
    active.value = Math.max(0, Math.min(rows.length - 1, at));
    showRow(scroller.current, active.value * rowHeight, rowHeight, height.value);
  };

  return (
    // biome-ignore lint/a11y/useSemanticElements: only the rows in sight exist, which a table element cannot say
    <div
      class={narrow.value ? `${tableLook.table} ${tableLook.narrow}` : tableLook.table}
      role="grid"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-multiselectable={selected ? true : undefined}
      tabIndex={0}
      aria-activedescendant={current >= first && current < last ? `${id}-${current}` : undefined}
      onKeyDown={(event) => press(event, props, { current, page, anchor, moveTo })}
      ref={scroller}
      onScroll={({ currentTarget }) => {
        top.value = Math.floor(currentTarget.scrollTop / rowHeight / beyond) * beyond;
      }}
    >
      <TableHead
        columns={columns}
        tracks={tracks}
        sorting={sortBy && { sort, sortBy, sortable }}
        all={selected && rows.length > 0 && rows.every((row) => selected.value.has(rowKey(row)))}
        selectAll={(all) => {
          if (selected) selected.value = all ? new Set(rows.map(rowKey)) : new Set();
        }}
      />
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys */}
      <div
        class={tableLook.tableBody}
        role="rowgroup"
        style={{ height: `${rows.length * rowHeight}px` }}
        onClick={(event) => {
          const target = event.target as Element;
          const at = Number(target.closest("[role=row]")?.getAttribute("aria-rowindex")) - 2;
          if (!(at >= 0)) return;
          active.value = at;
          const row = rows[at];
          if (target.closest("[data-pick]")) toggle(props, anchor, at, event.shiftKey);
          else if (row !== undefined && !target.closest("a, button")) props.open?.(row);
        }}
      >
        {rows.slice(first, last).map((row, offset) => (
          <TableRow
            key={rowKey(row)}
            id={`${id}-${first + offset}`}
            row={row}
            at={first + offset}
            current={first + offset === current}
            chosen={selected?.value.has(rowKey(row))}
            columns={columns as readonly Column<unknown>[]}
            tracks={tracks}
            rowHeight={rowHeight}
            tone={tone?.(row)}
          />
        ))}
      </div>
    </div>
  );
}

/** Scrolls as little as brings a row into sight. */
function showRow(element: HTMLElement | null, rowTop: number, rowHeight: number, height: number): void {
  if (element === null) return;
  if (rowTop < element.scrollTop) element.scrollTop = rowTop;
  const under = rowTop + rowHeight - height;
  if (under > element.scrollTop) element.scrollTop = under;
}

/** Selects a row or gives it up; with `range`, selects all from the one before. */
function toggle<T>(
  { rows, rowKey, selected }: TableProps<T>,
  anchor: { current: number },
  at: number,
  range: boolean,
): void {
  if (selected === undefined) return;
  const keys = new Set(selected.value);
  const [from, to] = range ? [Math.min(anchor.current, at), Math.max(anchor.current, at)] : [at, at];
  const chosen = rows.slice(from, to + 1).map(rowKey);
  const add = range || !keys.has(chosen[0] ?? "");
  for (const key of chosen) keys[add ? "add" : "delete"](key);
  anchor.current = at;
  selected.value = keys;
}

interface Position {
  readonly current: number;
  /** How many rows are in sight. */
  readonly page: number;
  readonly anchor: { current: number };
  moveTo(at: number): void;
}

function press<T>(event: KeyboardEvent, props: TableProps<T>, { current, page, anchor, moveTo }: Position): void {
  if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
  const row = props.rows[current];
  const moves: Record<string, () => void> = {
    ArrowDown: () => moveTo(current + 1),
    ArrowUp: () => moveTo(current - 1),
    PageDown: () => moveTo(current + page),
    PageUp: () => moveTo(current - page),
    Home: () => moveTo(0),
    End: () => moveTo(props.rows.length - 1),
    " ": () => toggle(props, anchor, current, event.shiftKey),
    Enter: () => row !== undefined && props.open?.(row),
  };
  const move = moves[event.key];
  if (move === undefined) return;
  event.preventDefault();
  move();
}
