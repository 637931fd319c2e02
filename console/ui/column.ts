import type { ComponentChildren } from "preact";
import type { Moment } from "./time.tsx";

/** A column: `width` is a track of CSS grid. On a narrow page a row has two lines, and `line` says in which the cell is; 0: in none. */
export interface Column<T> {
  readonly key: string;
  readonly label: string;
  readonly width: string;
  readonly line?: 0 | 1 | 2;
  readonly end?: boolean;
  /** Its label is heard alone: the cells speak for themselves. */
  readonly bare?: boolean;
  /** It is the name by which people know the row, and leads where the row leads. */
  readonly link?: boolean;
  cell(row: T): ComponentChildren;
  /** Draws what follows the link. */
  beside?(row: T): ComponentChildren;
  /** The text that hides when the cell is too narrow. */
  title?(row: T): string;
  /** Returns the text, count or moment that rows are ordered by once all are loaded. Absent: no order by this column. */
  sort?(row: T): string | Moment | undefined;
}

/** A column of a text. */
export function textColumn<T>(
  key: string,
  label: string,
  width: string,
  text: (row: T) => string,
  more: { line?: 0 | 1 | 2; end?: boolean } = {},
): Column<T> {
  return { key, label, width, cell: text, title: text, sort: text, ...more };
}
