import type { Fragment } from "postgres";
import type { Db } from "../connect.ts";
import { sqlJoin } from "../sql-join.ts";
import type { CursorPlace } from "./cursor.ts";

/**
 * One expression that rows are ordered by. `type` is the SQL type that a cursor's text is read back as. Rows without
 * a value come last, whichever the direction.
 */
export interface SortKey {
  expression: Fragment;
  type: "bigint" | "float8" | "text" | "boolean" | "bytea";
  descending: boolean;
  /** Every row has a value: then an index on the expression serves the order and the place in it. */
  required?: true;
}

function cast(db: Db, value: string, type: SortKey["type"]): Fragment {
  switch (type) {
    case "bigint":
      return db`${value}::text::bigint`;
    case "float8":
      return db`${value}::text::float8`;
    case "boolean":
      return db`${value}::text::boolean`;
    case "bytea":
      return db`decode(${value}::text, 'hex')`;
    case "text":
      return db`${value}::text collate "C"`;
  }
}

/** `order by` list of the keys; `backward` is the exact reverse. */
export function orderBy(db: Db, keys: readonly SortKey[], backward = false): Fragment {
  const parts = keys.map(({ expression, descending, required }) => {
    const direction = descending === backward ? db`asc` : db`desc`;
    if (required) return db`${expression} ${direction}`;
    return db`${expression} ${direction} ${backward ? db`nulls first` : db`nulls last`}`;
  });
  return sqlJoin(db, parts, ",");
}

/** The keys of a row as texts, for its cursor: an array column to select. */
export function keyTexts(db: Db, keys: readonly SortKey[]): Fragment {
  const parts = keys.map(({ expression, type }) =>
    type === "bytea" ? db`encode(${expression}, 'hex')` : db`(${expression})::text`,
  );
  return db`array[${sqlJoin(db, parts, ",")}]`;
}

/** Whether PostgreSQL reads the text as a value of the type: it need not be one that `keyTexts` has made. */
function fits(text: string | null, type: SortKey["type"]): boolean {
  if (text === null) return true;
  switch (type) {
    case "bigint":
      return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
    case "float8":
      // What is too large or too small for a double is an error there.
      return (
        /^-?\d{1,400}(\.\d{1,400})?(e[+-]\d{1,3})?$/.test(text) &&
        Number.isFinite(Number(text)) &&
        (Number(text) !== 0 || /^[-0.]*(e|$)/.test(text))
      );
    case "boolean":
      return text === "true" || text === "false";
    case "bytea":
      return /^([0-9a-f]{2})*$/.test(text);
    case "text":
      return true;
  }
}

/** The key texts of a cursor's row. @throws the cursor's error when they are no keys of these types, the last with a value */
export function keyTextsOf({ texts, wrong }: CursorPlace, types: readonly SortKey["type"][]): CursorPlace["texts"] {
  const good = texts.length === types.length && texts.at(-1) !== null;
  if (!good || !types.every((type, i) => fits(texts[i] ?? null, type))) throw wrong();
  return texts;
}

/**
 * True for rows that come after (`backward`: before) the row of a cursor. `keys` must end in ones that distinguish all rows
 * apart, and always have a value. @throws the cursor's error when its texts are no keys of these types
 */
export function beyond(db: Db, keys: readonly SortKey[], place: CursorPlace, backward = false): Fragment {
  const texts = keyTextsOf(
    place,
    keys.map(({ type }) => type),
  );
  const alternatives: Fragment[] = [];
  let equalSoFar = db`true`;
  for (const [i, { expression, type, descending, required }] of keys.entries()) {
    const text = texts[i] ?? null;
    if (text === null) {
      if (backward) alternatives.push(db`(${equalSoFar} and ${expression} is not null)`);
      equalSoFar = db`${equalSoFar} and ${expression} is null`;
      continue;
    }
    const value = cast(db, text, type);
    const smaller = descending !== backward;
    const further = smaller ? db`${expression} < ${value}` : db`${expression} > ${value}`;
    alternatives.push(
      backward || required
        ? db`(${equalSoFar} and ${further})`
        : db`(${equalSoFar} and (${further} or ${expression} is null))`,
    );
    equalSoFar = db`${equalSoFar} and ${expression} = ${value}`;
  }
  const any = sqlJoin(db, alternatives, "or");
  const [first] = keys;
  const text = texts[0] ?? null;
  if (!first?.required || text === null) return any;
  // The same for the first key alone, which holds for all of them: an index can begin there.
  const begin = first.descending !== backward ? db`<=` : db`>=`;
  return db`(${first.expression} ${begin} ${cast(db, text, first.type)} and ${any})`;
}
