import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeCursor, encodeCursor, queryDigest } from "../../../src/db/paging/cursor.ts";
import { cases } from "../../support/cases.ts";

const digest = queryDigest("query");
const keys = fc.array(fc.option(fc.string({ unit: "grapheme" })), { maxLength: 5 });
const refused = expect.objectContaining({
  code: Code.InvalidArgument,
  rawMessage: expect.stringContaining("pageInput.cursor"),
});

test("a cursor gives back its keys to the same list, tenant and query", () => {
  fc.assert(
    fc.property(keys, (list) => {
      const cursor = encodeCursor("events", "t1", digest, list);
      expect(cursor).toMatch(/^[\w-]+$/);
      expect(decodeCursor("events", "t1", digest, cursor, "pageInput.cursor").texts).toEqual(list);
    }),
  );
});

test.each([
  ["list", "entities", "t1", digest],
  ["tenant", "events", "t2", digest],
  ["query", "events", "t1", queryDigest("other")],
])("a cursor of another %s is refused with code 3 that names its path", (_what, kind, tenantId, ofQuery) => {
  const cursor = encodeCursor(kind, tenantId, ofQuery, ["a", null]);
  expect(() => decodeCursor("events", "t1", digest, cursor, "pageInput.cursor")).toThrow(refused);
});

test.each([{}, 7, null, ["a", 7], ["a\0"]])("a forged cursor with %j in place of keys is refused", (forged) => {
  const cursor = encodeCursor("events", "t1", digest, forged as never);
  expect(() => decodeCursor("events", "t1", digest, cursor, "pageInput.cursor")).toThrow(refused);
});

test("a damaged cursor is refused: any character changed, cut or added, and anything that never was one", () => {
  const cursor = encodeCursor("events", "t1", digest, ["1700000000000", "web-1", null]);
  const damaged = fc.oneof(
    fc
      .tuple(fc.nat(cursor.length - 1), fc.constantFrom(..."ABCxyz019-_=+/ é"))
      .map(([i, char]) => cursor.slice(0, i) + char + cursor.slice(i + 1)),
    fc.nat(cursor.length - 1).map((length) => cursor.slice(0, length)),
    fc.string({ minLength: 1 }).map((text) => cursor + text),
    fc.string({ unit: "binary" }),
    fc.constant("A".repeat(100_000)),
  );
  fc.assert(
    fc.property(
      damaged.filter((text) => text !== cursor),
      (text) => {
        expect(() => decodeCursor("events", "t1", digest, text, "pageInput.cursor")).toThrow(refused);
      },
    ),
    { numRuns: cases(1000) },
  );
});
