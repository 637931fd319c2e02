import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { EventSchema, type Severity } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type EventRow,
  type ListAction,
  type ListRows,
  listAfter,
  matchingRows,
  noRows,
  orderOf,
  rowKey,
} from "../../console/events/list-rows.ts";

const order = orderOf({ key: "severity", descending: true });

/** A row of an event of that name; its severity orders it, the highest first. */
function row(id: string, severity: Severity): EventRow {
  const event = create(EventSchema, { id, name: id, occurrences: [{ id, severity, lastSeen: 1n }] });
  const [occurrence] = event.occurrences;
  if (occurrence === undefined) throw new Error("an event without an occurrence");
  return { event, occurrence };
}

const keys = (rows: readonly EventRow[]) => rows.map(rowKey).join("");
const after = (list: ListRows, ...actions: ListAction[]) =>
  actions.reduce((before, action) => listAfter(before, action, order), list);
const everything = () => true;
const reread = (found: EventRow[], isHeld: boolean, more: Partial<Extract<ListAction, { kind: "reread" }>> = {}) =>
  ({ kind: "reread", found, wasRead: everything, departed: [], isHeld, ...more }) as const;

const list = after(noRows, { kind: "replace", rows: [row("b", 3), row("a", 4), row("d", 1)], total: 3 });

test("a first page replaces all rows, in their order", () => {
  expect(keys(list.rows)).toBe("abd");
  const next = after(list, { kind: "replace", rows: [row("x", 0)], total: 9 });
  expect(next).toEqual({ ...noRows, rows: [row("x", 0)], total: 9 });
});

describe("while a person reads", () => {
  test("a further page follows the rows, each row once", () => {
    const next = after(list, { kind: "page", rows: [row("d", 1), row("c", 2)], isHeld: true });
    expect([keys(next.rows), next.inOrder]).toEqual(["abdc", false]);
  });

  test("what comes between the rows waits, what belongs behind them follows, and the total follows both", () => {
    const next = after(list, reread([...list.rows, row("c", 2), row("e", 0)], true));
    expect([keys(next.rows), keys(next.waiting), next.total]).toEqual(["abde", "c", 5]);
  });

  test("what no longer matches is gone in its place, as it is now", () => {
    const closed = { ...row("b", 3), event: create(EventSchema, { id: "b", name: "closed" }) };
    const next = after(list, reread([row("a", 4), row("d", 1)], true, { departed: [closed] }));
    expect([keys(next.rows), [...next.gone], next.total]).toEqual(["abd", ["b"], 2]);
    expect(next.rows[1]?.event.name).toBe("closed");
    const back = after(next, reread([...list.rows], true));
    expect([keys(back.rows), back.gone.size, back.total]).toEqual(["abd", 0, 3]);
  });

  test("what was not read stays as it is", () => {
    const next = after(list, reread([], true, { wasRead: (each) => rowKey(each) === "a" }));
    expect([keys(next.rows), [...next.gone]]).toEqual(["abd", ["a"]]);
  });

  test("a row keeps its place though its severity changes, until rows are released", () => {
    const next = after(list, reread([row("a", 4), row("b", 3), row("d", 5)], true));
    expect(keys(next.rows)).toBe("abd");
    expect(keys(after(next, { kind: "release" }).rows)).toBe("dab");
  });
});

test("released rows are those that match, with those that waited, in order", () => {
  const held = after(list, reread([row("a", 4), row("d", 1), row("c", 2)], true));
  expect(keys(matchingRows(held))).toBe("adc");
  const next = after(held, { kind: "release" });
  expect(next).toEqual({ ...noRows, rows: [row("a", 4), row("c", 2), row("d", 1)], total: 3 });
  expect(after(next, { kind: "release" })).toBe(next);
});

test("rows that are not held move, come and leave at once", () => {
  const next = after(list, reread([row("d", 5), row("c", 2)], false));
  expect([keys(next.rows), next.waiting, next.gone.size, next.total]).toEqual(["dc", [], 0, 2]);
  const further = after(next, { kind: "page", rows: [row("e", 3), row("c", 2)], isHeld: false });
  expect([keys(further.rows), further.inOrder]).toEqual(["dec", true]);
});

test("a total that was counted stands, whatever rows are loaded", () => {
  expect(after(list, reread([row("a", 4)], false, { total: 70 })).total).toBe(70);
  expect(after(list, { kind: "count", total: 71 }).total).toBe(71);
});

test("rows of the same order are ordered by when they were last seen, acknowledged ones last where asked for", () => {
  const seen = (id: string, lastSeen: bigint, acknowledged: boolean) => {
    const event = create(EventSchema, { id, name: id, occurrences: [{ id, severity: 3, lastSeen, acknowledged }] });
    return { event, occurrence: event.occurrences[0] as EventRow["occurrence"] };
  };
  const rows = [seen("a", 1n, false), seen("b", 3n, true), seen("c", 2n, false)];
  expect(keys(rows.toSorted(order))).toBe("bca");
  expect(keys(rows.toSorted(orderOf({ key: "severity", descending: true, acknowledgedLast: true })))).toBe("cab");
});
