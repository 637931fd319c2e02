import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PageInputSchema } from "#gen/belfry/db/v1/paging_pb.ts";
import { encodeCursor, queryDigest } from "../../../src/db/paging/cursor.ts";
import { pageRequest } from "../../../src/db/paging/page-request.ts";

const query = create(PageInputSchema);
const page = (cursor: string) =>
  pageRequest("things", "t1", create(PageInputSchema, { limit: 2, cursor }), "page_input", PageInputSchema, query);
async function after(cursor: string, total: bigint) {
  const { info } = await page(cursor).cut(["a", "b", "c"], (row) => [row], total);
  return info.endCursor;
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

test("a cursor leads to the page beyond its row, and brings what was counted", async () => {
  expect(page("")).toMatchObject({ after: undefined, counted: undefined });
  expect(page(await after("", 7n))).toMatchObject({ after: { texts: ["b"] }, counted: 7n });
});

test("what was counted is good for 10 s, from page to page, and is then counted anew", async () => {
  const second = await after("", 7n);
  vi.setSystemTime(1_006_000);
  const third = await after(second, page(second).counted ?? 0n);
  vi.setSystemTime(1_010_000);
  expect(page(third).counted).toBe(7n);
  vi.setSystemTime(1_010_001);
  expect(page(third)).toMatchObject({ after: { texts: ["b"] }, counted: undefined });
  expect(page(await after(third, 8n)).counted).toBe(8n);
});

test.each([["b"], ["b", "7"], ["b", "-7", "1000000"], ["b", "7", ""], ["b", null, "1000000"]])(
  "a forged cursor of %j, without a count and its time behind the keys, is refused",
  (...texts) => {
    const digest = queryDigest(toBinary(PageInputSchema, query));
    expect(() => page(encodeCursor("things", "t1", digest, texts))).toThrow("page_input.cursor");
  },
);
