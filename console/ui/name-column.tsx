import type { Column } from "./column.ts";

/** The column of the name by which people know a row. */
export function nameColumn<T>(label: string, width: string, name: (row: T) => string, title = name): Column<T> {
  return { key: "name", label, width, line: 1, link: true, cell: (row) => <strong>{name(row)}</strong>, title };
}
