import { expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { cases, injections, rows } from "./cases.ts";
import { clauseOf, matchedBySql, matchedInMemory, row } from "./rows.ts";

const { sql } = await testDatabase();
const clauses = cases.map(({ clause }) => clauseOf(clause));
const bySql = await matchedBySql(sql, clauses, rows);
const inMemory = matchedInMemory(clauses, rows);

test.each(cases.map(({ clause, matches }, i) => ({ clause: JSON.stringify(clause), matches, i })))(
  "$clause",
  ({ matches, i }) => {
    const inOrder = rows.map(({ id }) => id).filter((id) => matches.includes(id));
    expect(bySql[i]).toEqual(inOrder);
    expect(inMemory[i]).toEqual(inOrder);
  },
);

test.each(injections)("%j is nothing but a name and a value", async (text) => {
  const found = [
    row("dimension", { dimensions: { [text]: text } }),
    row("metadata", { metadata: { [text]: text } }),
    row("name", { name: text }),
    row("other", { name: "abc", dimensions: { a: "abc" }, metadata: { v: "abc" } }),
  ];
  const asked = [`dimensions.${text}`, `metadataFields.${text}`, "name"].flatMap((field) => [
    ...["OP_EQUALS", "OP_CONTAINS", "OP_STARTS_WITH", "OP_END_WITH", "OP_GREATER_OR_EQ"].map((operation) => ({
      filter: { field, operation, value: text },
    })),
    { filter: { field, operation: "OP_IN", value: [text] } },
    { range: { path: field, gte: text, lte: text } },
    { filter: { field, operation: "OP_REGEX", value: text.replace(/[^A-Za-z0-9\s\u0080-\uffff]/g, "\\$&") } },
  ]);
  const unknown = [{ filter: { field: text, operation: "OP_EQUALS", value: text } }, { withIds: { ids: [text] } }];
  const clauses = [...asked, ...unknown].map(clauseOf);
  const matched = await matchedBySql(sql, clauses, found);
  expect(matched).toEqual(matchedInMemory(clauses, found));
  const own = (id: string) => matched.filter((ids) => ids.includes(id)).length;
  expect([own("dimension"), own("metadata"), own("name")]).toEqual([8, 8, 8]);
  expect(matched.slice(-2)).toEqual([[], []]);
});
