import { describe, expect, test } from "vitest";
import { applyInstance, type History, type Instance } from "../../src/events/lifecycle.ts";

const [DEFAULT, OPEN, SUPPRESSED, CLOSED] = [0, 1, 2, 3];
const [WARNING, ERROR, CRITICAL] = [3, 4, 5];

function instance(time: number, status: number, more: Partial<Instance> = {}): Instance {
  return {
    timeMs: BigInt(time),
    severity: ERROR,
    status,
    acknowledged: undefined,
    type: "",
    summary: "",
    body: "",
    metadata: {},
    ...more,
  };
}

function play(...instances: Instance[]): History {
  const history: History = [];
  for (const each of instances) applyInstance(history, each);
  return history;
}

const brief = (history: History) =>
  history.map((o) => [
    o.number,
    o.status,
    Number(o.instanceCount),
    Number(o.startMs),
    Number(o.lastSeenMs),
    o.endMs === null ? null : Number(o.endMs),
  ]);

describe("the life of an event", () => {
  test("the first instance opens occurrence 1, with the severity and status that were sent", () => {
    const [occurrence] = play(instance(10, DEFAULT, { severity: DEFAULT, summary: "disk" }));
    expect(occurrence).toMatchObject({
      number: 1,
      severity: DEFAULT,
      status: DEFAULT,
      acknowledged: false,
      summary: "disk",
      endMs: null,
    });
  });

  test("a repeat counts in the active occurrence and moves its last sight", () => {
    expect(brief(play(instance(10, OPEN), instance(20, OPEN), instance(20, SUPPRESSED)))).toEqual([
      [1, SUPPRESSED, 3, 10, 20, null],
    ]);
  });

  test("CLOSED closes the active occurrence; the next instance that is not CLOSED opens number 2", () => {
    expect(brief(play(instance(10, OPEN), instance(20, CLOSED), instance(30, DEFAULT)))).toEqual([
      [1, CLOSED, 2, 10, 20, 20],
      [2, DEFAULT, 1, 30, 30, null],
    ]);
  });

  test("CLOSED with none ever seen records a closed occurrence", () => {
    expect(brief(play(instance(10, CLOSED)))).toEqual([[1, CLOSED, 1, 10, 10, 10]]);
  });

  test("CLOSED on a closed occurrence only counts", () => {
    const [occurrence] = play(
      instance(10, OPEN),
      instance(20, CLOSED),
      instance(30, CLOSED, { severity: CRITICAL, summary: "again" }),
    );
    expect(occurrence).toMatchObject({
      status: CLOSED,
      severity: ERROR,
      summary: "",
      endMs: 20n,
      instanceCount: 3n,
      lastSeenMs: 30n,
    });
  });

  test("DEFAULT severity and status on a repeat leave what is stored; so do absent texts and acknowledged", () => {
    const first = instance(10, OPEN, {
      severity: WARNING,
      summary: "disk",
      type: "t",
      body: "b",
      acknowledged: true,
      metadata: { a: 1 },
    });
    const [occurrence] = play(first, instance(20, DEFAULT, { severity: DEFAULT }));
    expect(occurrence).toMatchObject({
      severity: WARNING,
      status: OPEN,
      summary: "disk",
      type: "t",
      body: "b",
      acknowledged: true,
      metadata: { a: 1 },
    });
  });

  test("a new occurrence starts unacknowledged and with nothing of the one before", () => {
    const history = play(
      instance(10, OPEN, { acknowledged: true, summary: "old" }),
      instance(20, CLOSED),
      instance(30, OPEN),
    );
    expect(history[1]).toMatchObject({ number: 2, acknowledged: false, summary: "" });
  });
});

describe("a late instance", () => {
  const two = [instance(10, OPEN), instance(20, CLOSED), instance(30, OPEN), instance(40, OPEN)];

  test("counts in the latest occurrence that had begun by then, and changes no state", () => {
    expect(brief(play(...two, instance(35, CLOSED, { summary: "late" })))).toEqual([
      [1, CLOSED, 2, 10, 20, 20],
      [2, OPEN, 3, 30, 40, null],
    ]);
    expect(brief(play(...two, instance(25, OPEN)))).toEqual([
      [1, CLOSED, 3, 10, 20, 20],
      [2, OPEN, 2, 30, 40, null],
    ]);
  });

  test("older than all of them counts in the first and moves its start back", () => {
    expect(brief(play(...two, instance(5, OPEN)))).toEqual([
      [1, CLOSED, 3, 5, 20, 20],
      [2, OPEN, 2, 30, 40, null],
    ]);
  });

  test("from before a closing by hand or by age counts in what was closed; its last report is then the newest one", () => {
    const history = play(instance(10, OPEN));
    history[0] = { ...(history[0] as History[number]), status: CLOSED, endMs: 50n };
    applyInstance(history, instance(30, OPEN, { summary: "late", severity: CRITICAL }));
    applyInstance(history, instance(20, CLOSED));
    expect(brief(history)).toEqual([[1, CLOSED, 3, 10, 30, 50]]);
    expect(history[0]).toMatchObject({ summary: "", severity: ERROR });
    applyInstance(history, instance(50, OPEN));
    expect(brief(history)).toEqual([
      [1, CLOSED, 3, 10, 30, 50],
      [2, OPEN, 1, 50, 50, null],
    ]);
  });
});
