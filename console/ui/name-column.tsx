import type { Column } from "./column.ts";

/** The column of the name by which people know a row. */
export function nameColumn<T>(label: string, width: string, name: (row: T) => string, title = name): Column<T> {
  const cell = (row: T) => <strong>{name(row)}</strong>;
  return { key: "name", label, width, line: 1, link: true, cell, title, sort: name };
}
