import { expect, test } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { decide } from "../../../src/notifications/deciding/decide.ts";

test("a closed occurrence that a rule goes on to match is cleared, once", () => {
  const manner = {
    repeat: false,
    repeatIntervalMs: 0,
    repeatWhile: RepeatWhile.UNSPECIFIED,
    delayMs: 0,
    sendUpdates: true,
    muteDuringMaintenance: false,
  };
  const seen = (status: Status) => ({
    matches: true,
    again: true,
    inMaintenance: false,
    now: { severity: Severity.ERROR, status, acknowledged: false },
  });
  const opened = decide(manner, undefined, seen(Status.OPEN), 1000);
  const closed = decide(manner, opened?.match, seen(Status.CLOSED), 2000);
  expect(closed?.due).toEqual([{ occasion: "clear", createdMs: 2000, dueMs: 2000 }]);
  expect(decide(manner, closed?.match, seen(Status.CLOSED), 3000)).toBeUndefined();

  const muting = { ...manner, muteDuringMaintenance: true };
  const inWindow = (status: Status, severity: Severity = Severity.ERROR) => {
    const now = { severity, status, acknowledged: false } as const;
    return { ...seen(status), inMaintenance: true, now };
  };
  const held = decide(muting, opened?.match, inWindow(Status.OPEN, Severity.CRITICAL), 1500);
  expect(held).toMatchObject({ due: [], match: { muted: true } });
  for (const before of [opened, held]) {
    const ended = decide(muting, before?.match, inWindow(Status.CLOSED), 2000);
    expect(ended).toMatchObject({ due: [{ occasion: "clear" }], match: { muted: false } });
    expect(decide(muting, ended?.match, inWindow(Status.CLOSED), 3000)).toBeUndefined();
  }
  const unheard = decide(muting, undefined, inWindow(Status.OPEN), 1000);
  expect(decide(muting, unheard?.match, inWindow(Status.CLOSED), 2000)).toBeUndefined();
});
