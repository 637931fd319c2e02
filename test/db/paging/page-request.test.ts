import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { PageInputSchema } from "#gen/belfry/paging/v1/paging_pb.ts";
import { encodeCursor, queryDigest } from "../../../src/db/paging/cursor.ts";
import { pageRequest } from "../../../src/db/paging/page-request.ts";

const query = create(PageInputSchema);
const page = (cursor: string) =>
  pageRequest("things", "t1", create(PageInputSchema, { limit: 2, cursor }), "page_input", PageInputSchema, query);
async function after(cursor: string, total: bigint) {
  const { info } = await page(cursor).cut(["a", "b", "c"], (row) => [row], total);
  return info.endCursor;
}

test("a cursor leads to the page beyond its row, and brings what was counted", async () => {
  expect(page("")).toMatchObject({ after: undefined, counted: undefined });
  expect(page(await after("", 7n))).toMatchObject({ after: { texts: ["b"] }, counted: 7n });
});

test("what the first page has counted stays the total of all pages", async () => {
  const second = await after("", 7n);
  const third = await after(second, page(second).counted ?? 0n);
  expect(page(third).counted).toBe(7n);
});

test("a page may hold fewer rows than were asked for, and the next one begins after them", async () => {
  const { items, info } = await page("").cut(["a", "b"], (row) => [row], 2n, 1);
  expect([items, info.hasNext]).toEqual([["a"], true]);
  expect(page(info.endCursor)).toMatchObject({ after: { texts: ["a"] } });
});

test.each([["b"], ["b", "-7"], ["b", ""], ["b", null]])(
  "a forged cursor of %j, without a count behind the keys, is refused",
  (...texts) => {
    const digest = queryDigest(toBinary(PageInputSchema, query));
    expect(() => page(encodeCursor("things", "t1", digest, texts))).toThrow("page_input.cursor");
  },
);
