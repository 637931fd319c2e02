import fc from "fast-check";
import { expect, test } from "vitest";
import {
  fires,
  firstFlushMs,
  flush,
  type GroupManner,
  type GroupState,
  isResolved,
  type MemberView,
  nextFlushMs,
  sentAfter,
} from "../../../src/notifications/groups/flush.ts";
import { cases, seed } from "../../support/cases.ts";
import { happenings, membersMax, model, type Story, spanSec, story } from "./group-model.ts";

const place = "d";

interface Own {
  joinsMs: number;
  sentTo: readonly string[];
  againAt: readonly string[];
}

/** The same by what the service decides with: a group is flushed when it says that it is due, and asked at nothing else. */
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
  const delayMs = delaySec * 1000;
  const said: string[] = [];
  const now = Array.from({ length: membersMax }, () => ({
    firing: false,
    acknowledged: false,
    held: false,
    group: 0,
    startMs: 0,
  }));
  type Now = (typeof now)[number];
  const groups = [0, 1].map(() => ({ state: undefined as GroupState | undefined, stored: new Map<Now, Own>() }));
  type Group = (typeof groups)[number];
  const acts = happenings(of);
  const hasten = (group: Group, dueMs: number) => {
    const none = { flushedMs: undefined, repeatMs: undefined, openAt: [], held: false };
    const { state } = group;
    group.state = { ...none, ...state, dueMs: Math.min(state?.dueMs ?? Number.POSITIVE_INFINITY, dueMs) };
  };
  const joins = (alert: Now, nowMs: number, joinsMs: number) => {
    const group = groups[alert.group] as Group;
    const own = group.stored.get(alert);
    const stays = own && (own.sentTo.length > 0 || (own.joinsMs <= nowMs && (delayMs === 0 || joinsMs <= own.joinsMs)));
    const memberMs = stays ? own.joinsMs : joinsMs;
    group.stored.set(alert, { sentTo: [], againAt: [], ...own, joinsMs: memberMs });
    if (group.state?.flushedMs === undefined)
      hasten(group, firstFlushMs({ joinsMs: memberMs, startMs: alert.startMs }, manner.waitMs));
    else hasten(group, nextFlushMs(group.state.flushedMs, manner.intervalMs, Math.max(nowMs - 1, memberMs - 1)));
  };
  const leaves = (alert: Now, nowMs: number) => {
    const { state, stored } = groups[alert.group] as Group;
    const own = stored.get(alert);
    if (state?.flushedMs !== undefined)
      hasten(groups[alert.group] as Group, nextFlushMs(state.flushedMs, manner.intervalMs, nowMs - 1));
    if (own && (own.joinsMs > nowMs || (alert.held && own.sentTo.length === 0))) stored.delete(alert);
  };
  for (let nowMs = 1000; nowMs < spanSec * 1000; nowMs += 1000) {
    for (const { member, what } of acts.get(nowMs / 1000) ?? []) {
      const alert = now[member] as Now;
      if (what === "hold") alert.held = alert.firing;
      if (what === "release") alert.held = false;
      if (what === "acknowledge") alert.acknowledged = alert.firing;
      if (what === "end" && alert.firing) {
        leaves(alert, nowMs);
        alert.firing = false;
      }
      if (what === "move" && alert.firing) {
        leaves(alert, nowMs);
        alert.group = 1 - alert.group;
        const { stored } = groups[alert.group] as Group;
        const delayed = alert.startMs + delayMs;
        joins(alert, nowMs, stored.has(alert) ? delayed : Math.max(nowMs, delayed));
      }
      if (what === "release")
        for (const group of groups) if (group.state?.held && group.state.flushedMs === undefined) hasten(group, nowMs);
      if (what === "fire" && !alert.firing) {
        Object.assign(alert, { firing: true, held: false, acknowledged: false, startMs: nowMs });
        joins(alert, nowMs, nowMs + delayMs);
      }
    }
    for (const [i, group] of groups.entries()) {
      const { state, stored } = group;
      if (state?.dueMs === undefined || state.dueMs > nowMs) continue;
      const members = now.flatMap((alert, member) => {
        const own = stored.get(alert);
        return own ? [{ alert, member, own }] : [];
      });
      const seen = members.map(({ alert, own }): MemberView => {
        const { acknowledged, held, startMs } = alert;
        const early = own.joinsMs > nowMs;
        return {
          ...own,
          state: alert.firing && alert.group === i ? (early ? "waiting" : "firing") : early ? "gone" : "ended",
          startMs,
          acknowledged,
          holds: new Map(held ? [[place, Number.POSITIVE_INFINITY]] : []),
        };
      });
      const done = flush(manner, state, seen, state.dueMs, nowMs);
      const occasion = done.sends.get(place);
      const names = (which: (each: MemberView) => boolean) =>
        members.flatMap(({ member }, j) => (which(seen[j] as MemberView) ? [member] : [])).join("");
      if (occasion !== undefined) {
        const ended = sendUpdates ? names((each) => isResolved(each, place)) : "";
        said.push(`${nowMs / 1000} ${i} ${occasion} ${names((each) => fires(each, place))}-${ended}`);
      }
      for (const [j, { state: was, sentTo, againAt }] of sentAfter(seen, done.sends).entries()) {
        const { alert, own } = members[j] as (typeof members)[number];
        if (was === "gone" || (was === "ended" && !done.isEarly)) stored.delete(alert);
        else Object.assign(own, { sentTo, againAt });
      }
      group.state = done.group;
    }
  }
  return said;
}

test(`random timelines are told as the documentation tells them (seed ${seed})`, () => {
  fc.assert(
    fc.property(story, (of) => {
      expect(decided(of)).toEqual(model(of));
    }),
    { numRuns: cases(3000), seed },
  );
});
