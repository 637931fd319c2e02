import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { cases, rows } from "./cases.ts";
import { clauseOf } from "./rows.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const grpc = transport(server.target, "grpc", tenant.headers);
const events = createClient(EventQueryService, grpc);
const json = v1(server.url, tenant.headers);

await createClient(DataReceiverService, grpc).putEvents({
  events: rows.map(({ id, dimensions, metadata }) => ({
    name: id,
    timestamp: BigInt(Date.now()),
    dimensions: { row: id, ...dimensions },
    metadataFields: metadata as never,
  })),
});

describe("events:search answers each case", () => {
  test.each(cases.map(({ clause, matches }) => ({ clause, matches, text: JSON.stringify(clause) })))(
    "$text",
    async (each) => {
      const wanted = each.matches.toSorted();
      const { results } = await events.searchEvents({ query: { clause: clauseOf(each.clause) } });
      expect(results.map(({ name }) => name).toSorted()).toEqual(wanted);
      const { status, body } = await json("POST", "/v1/events:search", { query: { clause: each.clause } });
      expect(status).toBe(200);
      expect(body.results.map(({ name }: { name: string }) => name).toSorted()).toEqual(wanted);
    },
  );
});

const leaf = { filter: { field: "name", operation: "OP_EQUALS", value: "x" } };
const nested = (depth: number): object => (depth === 1 ? leaf : { not: { clause: nested(depth - 1) } });
const filter = (operation: string | number, value?: unknown) => ({
  filter: { field: "name", operation, ...(value !== undefined && { value }) },
});

/** What is refused, with the path below the clause and what the message says. */
const refused: { clause: object; path: string; says: string | RegExp }[] = [
  { clause: nested(33), path: ".not.clause".repeat(32), says: "must not lie deeper than 32 clauses" },
  {
    clause: { or: { clauses: Array(1000).fill(leaf) } },
    path: ".or.clauses[999]",
    says: "must not be more than the 1000th clause",
  },
  { clause: {}, path: "", says: "must hold exactly one of and, or, not, filter, in, range, withIds" },
  {
    clause: { ...leaf, withIds: { ids: ["x"] } },
    path: "",
    says: "must hold exactly one of and, or, not, filter, in, range, withIds",
  },
  { clause: { and: { clauses: [leaf, leaf, {}] } }, path: ".and.clauses[2]", says: "must hold exactly one of" },
  {
    clause: { and: { clauses: [leaf, { not: { clause: { ...leaf, or: { clauses: [leaf] } } } }] } },
    path: ".and.clauses[1].not.clause",
    says: "must hold exactly one of",
  },
  { clause: { and: { clauses: [] } }, path: ".and.clauses", says: "is required" },
  { clause: { not: {} }, path: ".not.clause", says: "is required" },
  {
    clause: { and: { clauses: [leaf, leaf, filter(99, "x")] } },
    path: ".and.clauses[2].filter.operation",
    says: /must be one of .*OP_EQUALS \(1\)/,
  },
  { clause: filter("OP_UNSPECIFIED", "x"), path: ".filter.operation", says: "is required" },
  { clause: { filter: { field: "", operation: 1, value: "x" } }, path: ".filter.field", says: "is required" },
  {
    clause: { filter: { field: "a\0b", operation: 1, value: "x" } },
    path: ".filter.field",
    says: "must not contain NUL",
  },
  { clause: filter(1, "a\0b"), path: ".filter.value", says: "must not contain NUL" },
  { clause: filter(1), path: ".filter.value", says: "must be a string, a number or a boolean" },
  { clause: filter(1, ["x"]), path: ".filter.value", says: "must be a string, a number or a boolean" },
  { clause: filter("OP_CONTAINS", 5), path: ".filter.value", says: "must be a string" },
  { clause: filter("OP_NOT_CONTAINS", true), path: ".filter.value", says: "must be a string" },
  { clause: filter("OP_TEXT", 5), path: ".filter.value", says: "must be a string" },
  { clause: filter("OP_GREATER", true), path: ".filter.value", says: "must be a string or a number" },
  { clause: filter("OP_EXISTS", "yes"), path: ".filter.value", says: "must be true, false or left out" },
  { clause: filter("OP_IN", "x"), path: ".filter.value", says: "must be a list of strings, numbers and booleans" },
  {
    clause: filter("OP_NOT_IN", ["x", { a: 1 }]),
    path: ".filter.value[1]",
    says: "must be a string, a number or a boolean",
  },
  {
    clause: { in: { field: "name", values: ["x", ["y"]] } },
    path: ".in.values[1]",
    says: "must be a string, a number or a boolean",
  },
  { clause: { range: { path: "name" } }, path: ".range", says: "must have at least one of gte, gt, lte, lt" },
  { clause: { range: { path: "name", gt: true } }, path: ".range.gt", says: "must be a string or a number" },
  { clause: { range: { path: "", gt: 1 } }, path: ".range.path", says: "is required" },
  { clause: { withIds: { ids: ["x", "\0"] } }, path: ".withIds.ids[1]", says: "must not contain NUL" },
  ...(
    [
      ["a(b", 2, "a parenthesis that is not closed"],
      ["ab)", 3, "a closing parenthesis without an opening one"],
      ["é😀[a", 3, "a bracket that is not closed"],
      ["[b-a]", 2, "a range whose ends are the wrong way round"],
      ["[[:word2:]]", 2, "[:word2:], which is not allowed"],
      ["*a", 1, "a repetition of nothing"],
      ["a**", 3, "a repetition of a repetition"],
      ["a{256}", 2, "a repetition of more than 255"],
      ["a{3,2}", 2, "a repetition whose bounds are the wrong way round"],
      ["(\\b)*", 5, "a repetition of what may have no characters but holds an assertion"],
      ["(a)\\1", 4, "the escape \\1, which is not allowed"],
      ["\\pL", 1, "the escape \\p, which is not allowed"],
      ["\\x{110000}", 1, "\\x without the number of a character"],
      ["a\\", 2, "a backslash at the end"],
      ["(?=a)", 1, "a kind of group that is not allowed"],
      ["a(?i)b", 2, "a kind of group that is not allowed"],
      ["(?P<n>a)", 1, "a kind of group that is not allowed"],
    ] as const
  ).map(([regex, at, reason]) => ({
    clause: filter("OP_REGEX", regex),
    path: ".filter.value",
    says: `must be a regular expression of the allowed syntax; at character ${at} it has ${reason}`,
  })),
  { clause: filter("OP_REGEX", "a".repeat(65_536)), path: ".filter.value", says: "is too complex" },
  { clause: filter("OP_REGEX", "((a{100}){100})"), path: ".filter.value", says: "is too complex" },
];

describe("is refused over /v1 and gRPC, with its path", () => {
  test.each(refused.map((each) => ({ ...each, text: JSON.stringify(each.clause).slice(0, 100) })))(
    "$text",
    async ({ clause, path, says }) => {
      const place = `query.clause${path}`;
      const { status, body } = await json("POST", "/v1/events:search", { query: { clause } });
      expect([status, body.code]).toEqual([400, 3]);
      expect(body.message.startsWith(`${place}: `), body.message).toBe(true);
      expect(body.message).toEqual(
        says instanceof RegExp ? expect.stringMatching(says) : expect.stringContaining(says),
      );
      const answer = await events.searchEvents({ query: { clause: clauseOf(clause) } }).catch((error) => error);
      expect([answer.code, answer.rawMessage]).toEqual([3, body.message]);
    },
  );

  test("numbers that are none, which JSON cannot say", async () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const clause = {
        filter: {
          field: "count",
          operation: Operation.OP_EQUALS,
          value: { kind: { case: "numberValue" as const, value } },
        },
      };
      const answer = await events.searchEvents({ query: { clause } }).catch((error) => error);
      expect([answer.code, answer.rawMessage]).toEqual([3, "query.clause.filter.value: must be finite"]);
    }
  });
});

test("a clause of depth 32 and one of 1000 clauses are answered", async () => {
  const wide = { or: { clauses: Array(999).fill(leaf) } };
  for (const clause of [nested(32), wide]) {
    const { status } = await json("POST", "/v1/events:search", { query: { clause } });
    expect(status).toBe(200);
  }
});

test.each([
  [
    { filter: { field: "severity", operation: "OP_EQUALS", value: "SEVERITY_FATAL" } },
    "filter.field",
    "severity",
    "SEVERITY_FATAL",
  ],
  [{ in: { field: "status", values: [1, "STATUS_OPEN", "open"] } }, "in.field", "status", "open"],
])("a name that an enumeration does not have is refused: %j", async (clause, place, field, value) => {
  const { status, body } = await json("POST", "/v1/events:search", { query: { clause } });
  expect({ status, code: body.code }).toEqual({ status: 400, code: 3 });
  expect(body.message).toContain(`${place}: compares ${field} with "${value}", which is none of `);
});
