import { expect, test } from "vitest";
import { answering } from "../support/receivers.ts";
import { dispatchSite } from "./dispatch.ts";

const { tenant, nowMs, receiver } = await dispatchSite();
const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const idsAt = (path: string) =>
  receiver()
    .received.filter((each) => each.path === path)
    .map(({ headers }) => headers["webhook-id"]);

test("what is due is sent once, recorded with its attempt, and gone from what waits", async () => {
  const place = await tenant();
  const ids = await place.put(range(40).map((event) => ({ event })));
  await place.dispatch(nowMs);
  expect(idsAt("/ops").toSorted()).toEqual(ids.toSorted());
  expect(await place.waiting()).toEqual([]);
  const done = await place.done();
  expect(done.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(new Set(done.map(({ status }) => status))).toEqual(new Set(["SENT"]));
  expect(done[0]?.attempts).toMatchObject([{ reason: "sent" }]);
  await place.dispatch(nowMs + 1000);
  expect(idsAt("/ops")).toHaveLength(40);
});

test("what is due later waits for its moment", async () => {
  const place = await tenant();
  await place.put([{ dueMs: nowMs + 5000 }]);
  expect(await place.dispatch(nowMs + 4999)).toEqual([]);
  expect(await place.dispatch(nowMs + 5000)).toMatchObject([{ status: "SENT" }]);
});

test("of one destination and subject the oldest goes first, and a later one waits for it", async () => {
  const place = await tenant({ order: {} });
  const destination = "order";
  const [first, second] = await place.put([
    { destination, createdMs: nowMs },
    { destination, createdMs: nowMs + 1, occasion: "severity" },
  ]);
  receiver().answer(answering(503));
  await place.dispatch(nowMs + 1);
  expect(idsAt("/order")).toEqual([first]);
  receiver().answer(answering(200));
  expect(await place.dispatch(nowMs + 2)).toEqual([]);
  await place.dispatch(nowMs + 6000);
  expect(idsAt("/order")).toEqual([first, first, second]);
});
