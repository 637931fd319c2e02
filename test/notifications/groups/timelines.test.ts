import fc from "fast-check";
import { expect, test } from "vitest";
import {
  fires,
  firstFlushMs,
  flush,
  type GroupManner,
  type GroupState,
  isResolved,
  nextFlushMs,
  type Seen,
} from "../../../src/notifications/deciding/groups/flush.ts";
import { cases, seed } from "../../support/cases.ts";
import { happenings, membersMax, model, type Story, spanSec, story } from "./group-model.ts";

const place = "d";

/** The same by what the service decides with: it is flushed when it says that it is due, and asked at nothing else. */
function decided(of: Story): string[] {
  const { waitSec, intervalSec, sendUpdates, repeatSec, unacknowledged, delaySec } = of;
  const manner: GroupManner = {
    waitMs: waitSec * 1000,
    intervalMs: intervalSec * 1000,
    sendUpdates,
    repeatIntervalMs: repeatSec === 0 ? undefined : repeatSec * 1000,
    whileUnacknowledged: unacknowledged,
    destinationNames: [place],
  };
  const said: string[] = [];
  const now = Array.from({ length: membersMax }, () => ({
    firing: false,
    acknowledged: false,
    held: false,
    startMs: 0,
  }));
  const stored = new Map<number, { joinsMs: number; sentTo: string[] }>();
  let group: GroupState | undefined;
  const acts = happenings(of);
  const hasten = (dueMs: number) => {
    group = {
      flushedMs: undefined,
      repeatMs: undefined,
      openAt: [],
      held: false,
      ...group,
      dueMs: Math.min(group?.dueMs ?? Number.POSITIVE_INFINITY, dueMs),
    };
  };
  for (let nowMs = 1000; nowMs < spanSec * 1000; nowMs += 1000) {
    for (const { member, what } of acts.get(nowMs / 1000) ?? []) {
      const alert = now[member] as (typeof now)[number];
      if (what === "hold" || what === "release") alert.held = what === "hold";
      if (what === "acknowledge") alert.acknowledged = alert.firing;
      if (what === "end" && alert.firing) {
        alert.firing = false;
        const own = stored.get(member);
        if (group?.flushedMs !== undefined) hasten(nextFlushMs(group.flushedMs, manner.intervalMs, nowMs - 1));
        if (own && own.joinsMs > nowMs) stored.delete(member);
      }
      if (what === "release" && group?.held && group.flushedMs === undefined) hasten(nowMs);
      if (what === "fire" && !alert.firing) {
        Object.assign(alert, { firing: true, acknowledged: false, startMs: nowMs });
        const own = stored.get(member);
        const joinsMs =
          own && (own.sentTo.length > 0 || (delaySec === 0 && own.joinsMs <= nowMs))
            ? own.joinsMs
            : nowMs + delaySec * 1000;
        stored.set(member, { joinsMs, sentTo: own?.sentTo ?? [] });
        if (group?.flushedMs === undefined) hasten(firstFlushMs({ joinsMs, startMs: nowMs }, manner.waitMs));
        else hasten(nextFlushMs(group.flushedMs, manner.intervalMs, Math.max(nowMs - 1, joinsMs - 1)));
      }
    }
    if (group?.dueMs === undefined || group.dueMs > nowMs) continue;
    const members = [...stored].toSorted(([a], [b]) => a - b);
    const seen = members.map(([member, { joinsMs, sentTo }]): Seen => {
      const { firing, acknowledged, held, startMs } = now[member] as (typeof now)[number];
      const early = joinsMs > nowMs;
      return {
        state: firing ? (early ? "waiting" : "firing") : early ? "gone" : "ended",
        joinsMs,
        startMs,
        acknowledged,
        sentTo,
        holds: new Map(held ? [[place, Number.POSITIVE_INFINITY]] : []),
      };
    });
    const done = flush(manner, group, seen, group.dueMs, nowMs);
    const occasion = done.sends.get(place);
    const names = (which: (each: Seen) => boolean) =>
      members.flatMap(([member], i) => (which(seen[i] as Seen) ? [member] : [])).join("");
    if (occasion !== undefined) {
      const firing = names((each) => fires(each, place));
      said.push(`${nowMs / 1000} ${occasion} ${firing}-${sendUpdates ? names((each) => isResolved(each, place)) : ""}`);
    }
    for (const [i, [member, own]] of members.entries()) {
      const each = seen[i] as Seen;
      if (each.state === "gone" || (each.state === "ended" && !done.isEarly)) stored.delete(member);
      else if (occasion !== undefined && occasion !== "clear" && fires(each, place)) own.sentTo = [place];
    }
    group = done.group;
  }
  return said;
}

test(`random timelines are told as the documentation tells them (seed ${seed})`, () => {
  // What holds and releases moves the first message to the next look, of which the model has no notion.
  const held = (of: Story) => of.acts.some(({ what }) => what === "hold");
  fc.assert(
    fc.property(
      story.filter((of) => !held(of)),
      (of) => {
        expect(decided(of)).toEqual(model(of));
      },
    ),
    { numRuns: cases(3000), seed },
  );
});

test(`whatever is held, a member is told to end only if it was told to fire, and each once (seed ${seed})`, () => {
  fc.assert(
    fc.property(story, (of) => {
      const told = new Set<string>();
      let open = false;
      for (const line of decided(of)) {
        const [, occasion, lists = ""] = line.split(" ");
        const [firing = "", ended = ""] = lists.split("-");
        if (of.sendUpdates || !open) expect(open).toBe(occasion !== "first");
        open = occasion !== "clear";
        if (occasion === "first" && !of.sendUpdates) told.clear();
        for (const each of firing) told.add(each);
        if (occasion === "clear") expect([...ended].some((each) => told.has(each))).toBe(true);
        for (const each of ended) told.delete(each);
        if (of.sendUpdates && occasion === "clear") expect([...told]).toEqual([]);
      }
    }),
    { numRuns: cases(3000), seed },
  );
});
