import { parameterOf } from "../data/address.ts";
import type { Column } from "./column.ts";
import { msOf } from "./time.tsx";

/** Order of a list. */
export interface SortBy {
  readonly key: string;
  readonly descending: boolean;
}

/** Returns the order that the address has for its list; undefined where it has none. Reads signals. */
export function sortHere(): SortBy | undefined {
  const text = parameterOf("sort") ?? "";
  return text === "" ? undefined : { key: text.replace(/^-/, ""), descending: text.startsWith("-") };
}

const texts = new Intl.Collator("en", { numeric: true });

/** Sorts rows by a column, those without a value last; returns them unchanged where the column has no order. */
export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], by: SortBy | undefined): readonly T[] {
  const valueOf = columns.find(({ key }) => key === by?.key)?.sort;
  if (valueOf === undefined) return rows;
  const way = by?.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [valueOf(a), valueOf(b)];
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
    if (typeof x === "string" || typeof y === "string") return way * texts.compare(String(x), String(y));
    return way * (msOf(x) - msOf(y));
  });
}
