import fc from "fast-check";
import type { FieldValue } from "../../src/clause/field.ts";
import { parsePattern } from "../../src/clause/regex.ts";
import { patterns } from "./patterns.ts";
import { type Row, row } from "./rows.ts";

const ids = ["r0", "r1", "r2", "r3", "r4", "r5", "unknown"];
const keys = ["a", "b", "ключ", "it's", "a.b"];
const fields = [
  "name",
  "size",
  "ratio",
  "live",
  "level",
  "nothing",
  "dimensions.",
  "metadataFields.missing",
  ...keys.flatMap((key) => [`dimensions.${key}`, `metadataFields.${key}`, `metadataFields.${key}`]),
];

/** Texts that tell apart: numbers in every spelling, cases, patterns of LIKE, both planes, the order of code points. */
const texts = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      ..."abc|ABC|abc def|Abc\tDEF|5|5.0|05|50e-1|1e2|100|-0|0|.5|5.|+5| 5|1e400|-1e400|1e-400|4e-324|0e-999|9007199254740993|true|false|null|%|_|\\|a%|a_c|a\\|é|É|É|Straße|STRASSE|İ|i̇|ı|I|K|K|k|ſ|Σίσυφος|ΣΊΣΥΦΟΣ|ǅ|ǆ|😀|\ue000|\uffff|\u{10ffff}|𐐀|𐐨|LOW|HIGH|a\nb||".split(
        "|",
      ),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.string({ unit: "binary", maxLength: 6 }).map((text) => text.replaceAll("\0", "").toWellFormed()),
  },
);
const numbers = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      0,
      -0,
      1,
      2,
      5,
      100,
      -1,
      0.1,
      0.5,
      1e21,
      1e-7,
      5e-324,
      Number.MAX_VALUE,
      2 ** 53,
      2 ** 53 + 2,
      5.5,
    ),
  },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
);
const scalars = fc.oneof({ weight: 4, arbitrary: texts }, { weight: 3, arbitrary: numbers }, fc.boolean());
/** What a field may hold. */
export const jsonValues: fc.Arbitrary<FieldValue> = fc.oneof(
  { weight: 5, arbitrary: scalars },
  fc.constant(null),
  {
    weight: 3,
    arbitrary: fc.array(
      fc.oneof(
        { weight: 6, arbitrary: scalars },
        fc.constant(null),
        fc.array(scalars, { maxLength: 2 }),
        fc.record({ a: scalars }),
      ),
      { maxLength: 4 },
    ),
  },
  fc.record({ a: scalars }),
);

const someKeys = <T>(value: fc.Arbitrary<T>) =>
  fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 3, noNullPrototype: true });
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 4 });

/** Six rows, r0 to r5. */
export const rowLists: fc.Arbitrary<Row[]> = fc
  .array(
    fc.record({
      name: orNull(texts),
      size: orNull(fc.constantFrom(0, 1, 2, 5, 100, -1, 2 ** 53 - 1)),
      ratio: orNull(numbers),
      live: orNull(fc.boolean()),
      level: orNull(fc.constantFrom(0, 1, 2)),
      dimensions: someKeys(texts),
      metadata: someKeys(jsonValues),
    }),
    { minLength: 6, maxLength: 6 },
  )
  .map((list) => list.map((values, i) => row(`r${i}`, values)));

function parses(pattern: string): boolean {
  try {
    parsePattern(pattern, "");
    return true;
  } catch {
    return false;
  }
}

/** Expressions that are served: a few of those generated repeat what may be empty. */
export const servedPatterns = patterns.filter(parses);

const field = fc.constantFrom(...fields);
const filter = (operations: string[], value: fc.Arbitrary<unknown>) =>
  fc.record({ field, operation: fc.constantFrom(...operations), value });
const filters = fc.oneof(
  { weight: 3, arbitrary: filter(["OP_EQUALS", "OP_NOT_EQUALS"], scalars) },
  { weight: 3, arbitrary: filter(["OP_CONTAINS", "OP_NOT_CONTAINS", "OP_STARTS_WITH", "OP_END_WITH"], texts) },
  {
    weight: 3,
    arbitrary: filter(["OP_GREATER", "OP_GREATER_OR_EQ", "OP_LESS", "OP_LESS_OR_EQ"], fc.oneof(texts, numbers)),
  },
  filter(["OP_EXISTS"], fc.constantFrom(true, false, null)),
  { weight: 2, arbitrary: filter(["OP_REGEX"], servedPatterns) },
  { weight: 2, arbitrary: filter(["OP_TEXT"], fc.oneof(texts, fc.constantFrom("ABC def", "i", "K\u2003", "  "))) },
  { weight: 2, arbitrary: filter(["OP_IN", "OP_NOT_IN"], fc.array(scalars, { maxLength: 4 })) },
);
const bound = fc.option(fc.oneof(texts, numbers));
const ranges = fc
  .record({ path: field, gte: bound, gt: bound, lte: bound, lt: bound })
  .filter(({ gte, gt, lte, lt }) => [gte, gt, lte, lt].some((value) => value !== null));

/** Clauses of every type and operation, in their JSON form. */
export const clauses: fc.Arbitrary<object> = fc.letrec<{ clause: object; list: object[] }>((tie) => ({
  clause: fc.oneof(
    { depthSize: "small", maxDepth: 5 },
    { weight: 6, arbitrary: filters.map((value) => ({ filter: value })) },
    {
      weight: 2,
      arbitrary: fc.record({ field, values: fc.array(scalars, { maxLength: 4 }) }).map((value) => ({ in: value })),
    },
    { weight: 2, arbitrary: ranges.map((value) => ({ range: value })) },
    fc.array(fc.constantFrom(...ids), { maxLength: 3 }).map((list) => ({ withIds: { ids: list } })),
    { weight: 2, arbitrary: tie("clause").map((clause) => ({ not: { clause } })) },
    { weight: 2, arbitrary: tie("list").map((list) => ({ and: { clauses: list } })) },
    { weight: 2, arbitrary: tie("list").map((list) => ({ or: { clauses: list } })) },
  ),
  list: fc.array(tie("clause"), { minLength: 1, maxLength: 3 }),
})).clause;
