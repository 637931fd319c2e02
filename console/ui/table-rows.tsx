import type { Column, TableProps } from "./table.tsx";

interface RowProps<T> {
  readonly id: string;
  readonly row: T;
  readonly at: number;
  readonly current: boolean;
  /** Undefined where rows cannot be selected. */
  readonly chosen: boolean | undefined;
  readonly columns: readonly Column<T>[];
  readonly tracks: string;
  readonly rowHeight: number;
  readonly tone: string | undefined;
}

/** One row of a table, at its place in the whole. */
export function TableRow<T>({ id, row, at, current, chosen, columns, tracks, rowHeight, tone = "" }: RowProps<T>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: only the rows in sight exist, which a table element cannot say
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active row
    <div
      id={`${id}-${at}`}
      role="row"
      aria-rowindex={at + 2}
      aria-selected={chosen}
      class={`row ${tone}${current ? " current" : ""}${chosen ? " chosen" : ""}`}
      style={{ transform: `translateY(${at * rowHeight}px)`, gridTemplateColumns: tracks, height: `${rowHeight}px` }}
    >
      {chosen !== undefined && (
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
}

/** The names of the columns; a press on one sorts by it. */
export function TableHead<T>({
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
