import { type Row, row } from "./rows.ts";

const metadata = (id: string, v: Row["metadata"][string]) => row(id, { dimensions: { id }, metadata: { v } });

/** The rows that the cases ask; all differ in the metadata field v, most of them in that alone. */
export const rows: readonly Row[] = [
  row("none", { dimensions: { id: "none", rack: "7", zone: "Zürich-1" } }),
  metadata("null", null),
  metadata("lower", "abc"),
  metadata("upper", "ABC"),
  metadata("empty", ""),
  metadata("words", "Straße  Grün-12 ÄÖÜ"),
  metadata("lines", "first line\nsecond\tline"),
  metadata("percent", "100% of a_b\\c"),
  metadata("smile", "😀 grin"),
  metadata("private", "\ue000"),
  metadata("five", 5),
  metadata("fiveText", "5"),
  metadata("fivePointText", "5.0"),
  metadata("ten", 10),
  metadata("tenText", "10"),
  metadata("fraction", 7.5),
  metadata("huge", "1e400"),
  metadata("zeros", "05"),
  metadata("true", true),
  metadata("false", false),
  metadata("trueText", "true"),
  metadata("list", ["abc", 5, true]),
  metadata("mixed", ["x", null, { a: "abc" }, ["abc"], 8]),
  metadata("emptyList", []),
  metadata("object", { a: "abc" }),
];

/** A clause in its JSON form, and the ids of the rows that it matches. */
export interface Case {
  clause: object;
  matches: readonly string[];
}

const everything = rows.map(({ id }) => id);
const without = (...ids: string[]) => everything.filter((id) => !ids.includes(id));

const v = (operation: string | number, value?: unknown) => ({
  filter: { field: "metadataFields.v", operation, ...(value !== undefined && { value }) },
});
const dimension = (key: string, operation: string, value?: unknown) => ({
  filter: { field: `dimensions.${key}`, operation, ...(value !== undefined && { value }) },
});
const range = (bounds: object) => ({ range: { path: "metadataFields.v", ...bounds } });
const oneOf = (...values: unknown[]) => ({ in: { field: "metadataFields.v", values } });

export const cases: readonly Case[] = [
  // Equality: texts by code point, numbers as numbers in every spelling, booleans as booleans, lists by their elements.
  { clause: v("OP_EQUALS", "abc"), matches: ["lower", "list"] },
  { clause: v(1, "ABC"), matches: ["upper"] },
  { clause: v("OP_EQUALS", ""), matches: ["empty"] },
  { clause: v("OP_EQUALS", 5), matches: ["five", "fiveText", "fivePointText", "list"] },
  { clause: v("OP_EQUALS", "5"), matches: ["five", "fiveText", "list"] },
  { clause: v("OP_EQUALS", "5.0"), matches: ["five", "fivePointText", "list"] },
  { clause: v("OP_EQUALS", "05"), matches: ["zeros"] },
  { clause: v("OP_EQUALS", "1e400"), matches: ["huge"] },
  { clause: v("OP_EQUALS", true), matches: ["true", "list"] },
  { clause: v("OP_EQUALS", "true"), matches: ["trueText"] },
  { clause: v("OP_EQUALS", "%"), matches: [] },
  { clause: v("OP_NOT_EQUALS", "abc"), matches: without("lower", "list") },
  { clause: v("OP_NOT_EQUALS", 5), matches: without("five", "fiveText", "fivePointText", "list") },
  { clause: { filter: { field: "nothing", operation: "OP_EQUALS", value: "x" } }, matches: [] },
  { clause: { filter: { field: "nothing", operation: "OP_NOT_EQUALS", value: "x" } }, matches: everything },
  // Order.
  { clause: v("OP_GREATER", 5), matches: ["ten", "tenText", "fraction", "mixed"] },
  { clause: v("OP_GREATER_OR_EQ", 7.5), matches: ["ten", "tenText", "fraction", "mixed"] },
  { clause: v("OP_LESS", 7.5), matches: ["five", "fiveText", "fivePointText", "list"] },
  {
    clause: v("OP_LESS_OR_EQ", "10"),
    matches: ["empty", "five", "ten", "tenText", "fraction", "list", "mixed", "zeros"],
  },
  { clause: v("OP_GREATER", "😀"), matches: ["smile"] },
  { clause: v("OP_GREATER_OR_EQ", "\ue000"), matches: ["smile", "private"] },
  { clause: v("OP_GREATER", "true"), matches: ["mixed", "smile", "private"] },
  { clause: range({ gt: 5, lt: 10 }), matches: ["fraction", "mixed"] },
  { clause: range({ gte: 5, lte: 5 }), matches: ["five", "fiveText", "fivePointText", "list"] },
  { clause: range({ gte: "a", lt: "b" }), matches: ["lower", "list"] },
  // One element has to lie within all bounds.
  { clause: range({ gt: 4, gte: "abc" }), matches: [] },
  { clause: range({ gte: null, lt: 6 }), matches: ["five", "fiveText", "fivePointText", "list"] },
  // Parts of texts; what looks like a pattern is none.
  { clause: v("OP_CONTAINS", "b"), matches: ["lower", "percent", "list"] },
  { clause: v("OP_CONTAINS", "0% of a_b\\"), matches: ["percent"] },
  { clause: v("OP_CONTAINS", "_%"), matches: [] },
  {
    clause: v("OP_CONTAINS", ""),
    matches: everything.filter(
      (id) => !["none", "null", "five", "ten", "fraction", "true", "false", "emptyList", "object"].includes(id),
    ),
  },
  { clause: v("OP_NOT_CONTAINS", "b"), matches: without("lower", "percent", "list") },
  { clause: v("OP_STARTS_WITH", "1"), matches: ["percent", "tenText", "huge"] },
  { clause: v("OP_STARTS_WITH", "😀"), matches: ["smile"] },
  { clause: v("OP_END_WITH", "line"), matches: ["lines"] },
  { clause: v("OP_END_WITH", "\\c"), matches: ["percent"] },
  { clause: v("OP_TEXT", "strasse"), matches: [] },
  { clause: v("OP_TEXT", "äöü STRAßE"), matches: ["words"] },
  { clause: v("OP_TEXT", " LINE first\n"), matches: ["lines"] },
  { clause: v("OP_TEXT", "abc 5"), matches: [] },
  // Regular expressions.
  { clause: v("OP_REGEX", "^a.c$"), matches: ["lower", "list"] },
  { clause: v("OP_REGEX", "(?i)^a.c$"), matches: ["lower", "upper", "list"] },
  { clause: v("OP_REGEX", "line.second"), matches: [] },
  { clause: v("OP_REGEX", "line\\ssecond"), matches: ["lines"] },
  { clause: v("OP_REGEX", "\\bline$"), matches: ["lines"] },
  {
    clause: v("OP_REGEX", "[[:digit:]]{2,}%?|\\x{1F600}"),
    matches: ["words", "percent", "smile", "tenText", "huge", "zeros"],
  },
  { clause: v("OP_REGEX", "(?i)äöü"), matches: [] },
  // Existence: a null is no value, an empty list is one.
  { clause: v("OP_EXISTS"), matches: without("none", "null") },
  { clause: v("OP_EXISTS", true), matches: without("none", "null") },
  { clause: v("OP_EXISTS", false), matches: ["none", "null"] },
  { clause: dimension("rack", "OP_EXISTS"), matches: ["none"] },
  // One of several.
  { clause: oneOf("abc", 10, false), matches: ["lower", "ten", "tenText", "false", "list"] },
  { clause: oneOf(), matches: [] },
  { clause: v("OP_IN", ["abc", 7.5]), matches: ["lower", "fraction", "list"] },
  { clause: v("OP_NOT_IN", ["abc", 7.5]), matches: without("lower", "fraction", "list") },
  { clause: { not: { clause: oneOf("abc") } }, matches: without("lower", "list") },
  // Dimensions are texts.
  { clause: dimension("rack", "OP_EQUALS", 7), matches: ["none"] },
  { clause: dimension("rack", "OP_GREATER", 6.5), matches: ["none"] },
  { clause: dimension("zone", "OP_STARTS_WITH", "Zürich-"), matches: ["none"] },
  { clause: dimension("zone", "OP_TEXT", "zÜRICH"), matches: ["none"] },
  { clause: dimension("id", "OP_REGEX", "^t.*Text$"), matches: ["tenText", "trueText"] },
  // Clauses of clauses.
  {
    clause: { and: { clauses: [v("OP_EXISTS"), { not: { clause: v("OP_REGEX", ".") } }, v("OP_NOT_EQUALS", "")] } },
    matches: ["five", "ten", "fraction", "true", "false", "emptyList", "object"],
  },
  {
    clause: { or: { clauses: [v("OP_EQUALS", "abc"), dimension("id", "OP_EQUALS", "ten"), range({ gt: 9 })] } },
    matches: ["lower", "ten", "tenText", "list"],
  },
  { clause: { not: { clause: { not: { clause: v("OP_EQUALS", 10) } } } }, matches: ["ten", "tenText"] },
  { clause: { withIds: { ids: [] } }, matches: [] },
];

/** Names and values that would break out of a statement were they ever part of its text. */
export const injections: readonly string[] = [
  "'",
  "''",
  '"',
  "\\",
  "\\'",
  "'; drop table entities; --",
  "' or '1'='1",
  "') or true --",
  "x' union select null --",
  "$1",
  "$$",
  "$tag$ or true $tag$",
  "#{1}",
  "%s",
  "/*",
  "*/ or true /*",
  "--",
  ";",
  "$[*]",
  "$.a ? (@ == 1)",
  "{a,b}",
  "{}",
  "null",
  "NULL",
  '{"v":"abc"}',
  '"} or {"',
  "a' | 'b",
  "':*",
  "!!",
  "__proto__",
  "constructor",
  "toString",
  "\u2019",
  "\ufeff",
  "\r\n",
];
