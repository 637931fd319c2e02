import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { goTo } from "../data/address.ts";
import { usePlace } from "../data/place.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import type { Column } from "./column.ts";
import { coarse, narrow } from "./narrow.ts";
import type { SortBy } from "./sort.ts";
import tableLook from "./table.module.css";
import { TableHead, TableRow } from "./table-rows.tsx";

interface TableProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  rowKey(row: T): string;
  /** Returns the address of a row: its name is the link, and Enter or a press on the row follows it. */
  hrefOf?: (row: T) => string;
  /** Keys of the rows that are selected. Absent: rows cannot be. */
  readonly selected?: Signal<ReadonlySet<string>>;
  /** Order of the list, and the call that sorts it by a column. */
  readonly sort?: SortBy;
  sortBy?: (key: string) => void;
  /** Columns that can be sorted by. */
  readonly sortable?: readonly string[];
  /** Count of all rows, loaded or not. */
  readonly total?: number;
  /** Loads more: called when the last rows come into sight. */
  more?: () => void;
  /** Rows stand out: what they say is worse. */
  tone?: (row: T) => string;
  /** Rows stand back. */
  dim?: (row: T) => boolean;
  /** Tells whether a row no longer matches. */
  gone?: (row: T) => boolean;
  /** Tells whether a row was just added. */
  fresh?: (row: T) => boolean;
  /** Gets the key of the current row. */
  readonly active?: Signal<string>;
  /** Gets the element that scrolls and has the focus. */
  readonly element?: { current: HTMLElement | null };
  /** Becomes true while a person reads: has scrolled, or points at rows. */
  readonly reading?: Signal<boolean>;
}

const beyond = 6;
/** A pointer that rests for longer points at nothing: to read a row and to decide takes less. */
const pointingMs = 60_000;
/** Height of the rows in sight of the table that was shown last: the next one is seldom of another, which would draw it twice. */
let lastHeight = 600;

/**
 * A table that renders the rows in sight alone. By keyboard: arrows, j and k, Page, Home, End; Space or x selects, Enter opens. Its place, the current
 * row and the focus are as they were when a person comes back to it.
 */
export function Table<T>(props: TableProps<T>) {
  const { label, rows, columns, rowKey, hrefOf, selected, total = rows.length, more } = props;
  const { sort, sortBy, sortable = [], tone, dim, gone, fresh, reading } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const place = usePlace(`${label}, row`, 0);
  const focused = usePlace(`${label}, focus`, false);
  const ownActive = usePlace(`${label}, current`, "");
  const active = props.active ?? ownActive;
  const top = useSignal(place.peek());
  const height = useSignal(lastHeight);
  const anchor = useRef(0);
  const restored = useRef(false);
  const pointing = useRef<ReturnType<typeof setTimeout>>(undefined);
  const rowHeight = narrow.value ? 60 : coarse.value ? 45 : 36;
  const headHeight = narrow.value ? 0 : coarse.value ? 45 : 29;

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const sizes = new ResizeObserver(() => {
      // Whatever the layout, no more is in sight than the page is high.
      lastHeight = Math.min(element.clientHeight, innerHeight) - headHeight;
      height.value = lastHeight;
    });
    sizes.observe(element);
    return () => sizes.disconnect();
  }, [headHeight]);

  // Back where it was, as soon as there are rows up to there; `more` brings them.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || restored.current || rows.length === 0) return;
    if (rows.length < place.peek() + height.peek() / rowHeight && rows.length < total) return;
    restored.current = true;
    element.scrollTop = place.peek() * rowHeight;
    if (focused.peek()) element.focus({ preventScroll: true });
    focused.value = false;
  }, [rows.length]);

  const first = Math.max(0, top.value - beyond);
  const last = Math.min(rows.length, top.value + Math.ceil(height.value / rowHeight) + 2 * beyond);
  useLayoutEffect(() => {
    if (more && last >= rows.length - 50 && rows.length < total) more();
  }, [last, rows.length, total]);

  const at = rows.findIndex((row) => rowKey(row) === active.value);
  const current = at === -1 ? Math.min(anchor.current, rows.length - 1) : at;
  const tracks = `${selected ? `${coarse.value ? 44 : 28}px ` : ""}${columns.map(({ width }) => width).join(" ")}`;
  const page = Math.max(1, Math.floor(height.value / rowHeight) - 1);
  const become = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (row !== undefined) active.value = rowKey(row);
  };
  const moveTo = (index: number) => {
    const bounded = Math.max(0, Math.min(rows.length - 1, index));
    become(bounded);
    showRow(scroller.current, bounded * rowHeight, rowHeight, height.value);
  };
  const leave = () => {
    focused.value = true;
  };
  const step = (by: number) => {
    scroller.current?.focus({ preventScroll: true });
    moveTo(at === -1 ? 0 : current + by);
  };
  useShortcuts({
    j: () => step(1),
    k: () => step(-1),
    ...(selected && { x: () => toggle(props, anchor, current, false) }),
  });
  const point = (now: boolean) => {
    clearTimeout(pointing.current);
    if (now) pointing.current = setTimeout(() => point(false), pointingMs);
    else pointing.current = undefined;
    say();
  };
  const say = () => {
    if (reading) reading.value = pointing.current !== undefined || (scroller.current?.scrollTop ?? 0) > 0;
  };
  useEffect(
    () => () => {
      clearTimeout(pointing.current);
      if (reading) reading.value = false;
    },
    [],
  );

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
      onKeyDown={(event) => press(event, props, { current, page, anchor, moveTo, leave })}
      ref={(element) => {
        scroller.current = element;
        if (props.element) props.element.current = element;
      }}
      onPointerMove={() => point(true)}
      onPointerLeave={() => point(false)}
      onScroll={({ currentTarget }) => {
        top.value = Math.floor(currentTarget.scrollTop / rowHeight / beyond) * beyond;
        if (restored.current) place.value = currentTarget.scrollTop / rowHeight;
        say();
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
        onMouseDown={(event) => {
          // A range is of rows, not of texts.
          if (event.shiftKey && (event.target as Element).closest("[data-pick]")) event.preventDefault();
          // Browsers would scroll by it.
          if (event.button === 1 && hrefOf) event.preventDefault();
        }}
        onAuxClick={(event) => {
          const row = rows[indexAt(event)];
          const beside = (event.target as Element).closest("a, button, [data-pick]") === null;
          if (event.button === 1 && beside && row !== undefined && hrefOf) openElsewhere(hrefOf(row));
        }}
        onClick={(event) => {
          const target = event.target as Element;
          const index = indexAt(event);
          const row = rows[index];
          if (row === undefined) return;
          become(index);
          if (target.closest("[data-pick]")) return toggle(props, anchor, index, event.shiftKey);
          anchor.current = index;
          // Who has marked a text wants to copy it; a link with a key held opens elsewhere.
          const marked = document.getSelection()?.toString() ?? "";
          const link = target.closest("a");
          if (marked !== "" && !event.shiftKey) event.preventDefault();
          else if (link !== null || target.closest("button")) leave();
          else if (hrefOf && (event.ctrlKey || event.metaKey)) openElsewhere(hrefOf(row));
          else if (hrefOf) {
            leave();
            goTo(hrefOf(row));
          }
        }}
      >
        {rows.slice(first, last).map((row, offset) => (
          <TableRow
            key={rowKey(row)}
            id={`${id}-${first + offset}`}
            row={row}
            at={first + offset}
            current={first + offset === current}
            active={first + offset === at}
            chosen={selected?.value.has(rowKey(row))}
            columns={columns as readonly Column<unknown>[]}
            tracks={tracks}
            rowHeight={rowHeight}
            tone={tone?.(row)}
            dim={dim?.(row) ?? false}
            gone={gone?.(row) ?? false}
            fresh={fresh?.(row) ?? false}
            href={hrefOf?.(row)}
          />
        ))}
      </div>
    </div>
  );
}

/** The place of the row that was pressed in the list; -1 for none. */
const indexAt = ({ target }: MouseEvent) =>
  Number((target as Element).closest("[role=row]")?.getAttribute("aria-rowindex") ?? 1) - 2;

/** Opens an address where a browser opens a link that is pressed like this: a tab of its own. */
const openElsewhere = (href: string) => void open(href, "_blank", "noopener");

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
  /** Count of rows in sight. */
  readonly page: number;
  readonly anchor: { current: number };
  moveTo(at: number): void;
  /** Notes that the table is left, to have the focus again. */
  leave(): void;
}

function press<T>(
  event: KeyboardEvent,
  props: TableProps<T>,
  { current, page, anchor, moveTo, leave }: Position,
): void {
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
    Enter: () => {
      if (row === undefined || props.hrefOf === undefined) return;
      leave();
      goTo(props.hrefOf(row));
    },
  };
  const move = moves[event.key];
  if (move === undefined) return;
  event.preventDefault();
  move();
}
