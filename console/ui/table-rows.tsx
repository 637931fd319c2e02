import type { Column } from "./column.ts";
import { memo } from "./memo.ts";
import type { SortBy } from "./sort.ts";
import tableLook from "./table.module.css";
import ui from "./ui.module.css";

const lineLook = [tableLook.line0, tableLook.line1, tableLook.line2];

interface RowProps {
  readonly id: string;
  readonly row: unknown;
  readonly at: number;
  /** The grid's keys act on it. */
  readonly current: boolean;
  /** True if it was made the current one, on which letters act. */
  readonly active: boolean;
  /** Undefined where rows cannot be selected. */
  readonly chosen: boolean | undefined;
  readonly columns: readonly Column<unknown>[];
  readonly tracks: string;
  readonly rowHeight: number;
  readonly tone: string | undefined;
  /** The row stands back: nothing is to be done about it. */
  readonly dim: boolean;
  /** True if the row no longer matches; it leaves when nobody reads. */
  readonly gone: boolean;
  /** True for a moment after the row has come. */
  readonly fresh: boolean;
  /** Address that it leads to. */
  readonly href: string | undefined;
}

/** One row of a table, at its place in the whole. */
export const TableRow = memo(function TableRow(props: RowProps) {
  const { id, row, at, current, active, chosen, columns, tracks, rowHeight, tone, dim, gone, fresh, href } = props;
  return (
    // biome-ignore lint/a11y/useSemanticElements: only the rows in sight exist, which a table element cannot say
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active row
    <div
      id={id}
      role="row"
      aria-rowindex={at + 2}
      aria-selected={chosen}
      class={`${tableLook.row} ${current ? tableLook.current : ""} ${active ? tableLook.active : ""} ${chosen ? tableLook.chosen : ""}`}
      data-tone={tone}
      data-dim={dim || gone || undefined}
      data-gone={gone || undefined}
      data-fresh={fresh || undefined}
      style={{ transform: `translateY(${at * rowHeight}px)`, gridTemplateColumns: tracks, height: `${rowHeight}px` }}
    >
      {chosen !== undefined && (
        // biome-ignore lint/a11y/useSemanticElements: as above
        // biome-ignore lint/a11y/useFocusableInteractive: as above
        <span class={`${tableLook.cell} ${tableLook.pick}`} role="gridcell" data-pick>
          <span class={tableLook.tick} aria-hidden="true">
            {chosen ? "✓" : ""}
          </span>
        </span>
      )}
      {columns.map((column, place) => (
        // biome-ignore lint/a11y/useSemanticElements: as above
        // biome-ignore lint/a11y/useFocusableInteractive: as above
        <span
          key={column.key}
          role="gridcell"
          class={`${tableLook.cell} ${lineLook[column.line ?? 2]} ${column.end ? tableLook.cellEnd : ""}`}
          title={column.title?.(row)}
        >
          {gone && place === 0 && <span class={ui.unseen}>No longer matches: </span>}
          {column.link && href !== undefined ? (
            <a href={href} tabIndex={-1} draggable={false}>
              {column.cell(row)}
            </a>
          ) : (
            column.cell(row)
          )}
          {column.beside?.(row)}
        </span>
      ))}
    </div>
  );
});

interface HeadProps<T> {
  readonly columns: readonly Column<T>[];
  readonly tracks: string;
  readonly sorting: Sorting | undefined;
  /** All rows are selected. Undefined: rows cannot be. */
  readonly all: boolean | undefined;
  selectAll(all: boolean): void;
}

interface Sorting {
  readonly sort: SortBy | undefined;
  readonly sortable: readonly string[];
  sortBy(key: string): void;
}

/** The names of the columns; a press on one sorts by it. */
export function TableHead<T>({ columns, tracks, sorting, all, selectAll }: HeadProps<T>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: only the rows in sight exist, which a table element cannot say
    <div class={tableLook.tableHead} role="rowgroup">
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus */}
      <div class={tableLook.row} role="row" aria-rowindex={1} style={{ gridTemplateColumns: tracks }}>
        {all !== undefined && (
          // biome-ignore lint/a11y/useSemanticElements: as above
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <span class={`${tableLook.cell} ${tableLook.pick}`} role="columnheader">
            <input
              type="checkbox"
              aria-label="Select all rows that are loaded"
              checked={all}
              onChange={() => selectAll(!all)}
            />
          </span>
        )}
        {columns.map(({ key, label, end, bare }) => {
          const descending = sorting?.sort?.key === key ? sorting.sort.descending : undefined;
          return (
            // biome-ignore lint/a11y/useSemanticElements: as above
            // biome-ignore lint/a11y/useFocusableInteractive: as above
            <span
              key={key}
              role="columnheader"
              class={`${tableLook.cell} ${end ? tableLook.cellEnd : ""}`}
              aria-sort={descending === undefined ? undefined : descending ? "descending" : "ascending"}
            >
              {sorting?.sortable.includes(key) ? (
                <button type="button" onClick={() => sorting.sortBy(key)}>
                  <span class={bare ? ui.unseen : undefined}>{label}</span>
                  <span aria-hidden="true">{descending === undefined ? "" : descending ? " ↓" : " ↑"}</span>
                </button>
              ) : (
                <span class={bare ? ui.unseen : undefined}>{label}</span>
              )}
            </span>
          );
        })}
      </div>
    </div>
  );
}
