import type { Fragment } from "postgres";

/** How a field that a clause names is read: a text column, or a key of a JSON object of texts. */
export type Field = { kind: "text"; sql: Fragment } | { kind: "textOf"; object: Fragment; key: string };

/** What a caller tells of its rows, so that clauses over them can be compiled. */
export interface Resolver {
  /** The field of this key; undefined when clauses on it are not served. */
  field(key: string): Field | undefined;
  /** SQL that holds for the rows of these ids; ids of a wrong form are unknown ones. */
  withIds(ids: readonly string[]): Fragment;
}
