import fc from "fast-check";

/** One thing that happens, so many seconds after the one before. */
export interface Act {
  readonly afterSec: number;
  readonly member: number;
  readonly what: "fire" | "end" | "acknowledge" | "hold" | "release";
}

export interface Story {
  readonly waitSec: number;
  readonly intervalSec: number;
  readonly sendUpdates: boolean;
  readonly repeatSec: number;
  readonly unacknowledged: boolean;
  readonly delaySec: number;
  readonly acts: readonly Act[];
}

export const membersMax = 4;
export const story: fc.Arbitrary<Story> = fc.record({
  waitSec: fc.integer({ min: 0, max: 20 }),
  intervalSec: fc.integer({ min: 1, max: 20 }),
  sendUpdates: fc.boolean(),
  repeatSec: fc.constantFrom(0, 25, 60),
  unacknowledged: fc.boolean(),
  delaySec: fc.constantFrom(0, 0, 7),
  acts: fc.array(
    fc.record({
      afterSec: fc.integer({ min: 0, max: 15 }),
      member: fc.nat(membersMax - 1),
      what: fc.constantFrom("fire", "fire", "end", "end", "acknowledge", "hold", "release"),
    }),
    { maxLength: 25 },
  ),
});

/** What happens, by second; each second is looked at after all that happens in it. */
export function happenings({ acts }: Story): Map<number, Act[]> {
  const bySec = new Map<number, Act[]>();
  let atSec = 1;
  for (const act of acts) {
    atSec += act.afterSec;
    bySec.set(atSec, [...(bySec.get(atSec) ?? []), act]);
  }
  return bySec;
}

/** After so many seconds nothing more is looked at. */
export const spanSec = 450;

interface Alert {
  firing: boolean;
  acknowledged: boolean;
  held: boolean;
  joinsSec: number;
  /** Whether a message said that it fires, and none that it has ended. */
  told: boolean;
  /** Whether it belongs to the group, though it may have ended. */
  member: boolean;
  startSec: number;
}

/** A group as the documentation tells it: it looks at every tick, and keeps what it has said. */
export function model(of: Story, untilSec = spanSec): string[] {
  const { waitSec, intervalSec, sendUpdates, repeatSec, unacknowledged, delaySec } = of;
  const said: string[] = [];
  const alerts = Array.from(
    { length: membersMax },
    (): Alert => ({
      firing: false,
      acknowledged: false,
      held: false,
      joinsSec: 0,
      told: false,
      member: false,
      startSec: 0,
    }),
  );
  const acts = happenings(of);
  let open = false;
  let lastFlushSec = 0;
  let messageSec = 0;
  let firstSec = Number.POSITIVE_INFINITY;
  const names = (list: readonly Alert[]) => list.map((each) => alerts.indexOf(each)).join("");
  for (let sec = 1; sec < untilSec; sec++) {
    for (const { member, what } of acts.get(sec) ?? []) {
      const alert = alerts[member] as Alert;
      if (what === "hold" || what === "release") alert.held = what === "hold";
      if (what === "acknowledge") alert.acknowledged = alert.firing;
      if (what === "end") alert.firing = false;
      if (what === "fire" && !alert.firing) {
        Object.assign(alert, {
          firing: true,
          member: true,
          acknowledged: false,
          startSec: sec,
          ...(!(alert.told || (alert.member && delaySec === 0)) && { joinsSec: sec + delaySec }),
        });
      }
    }
    for (const alert of alerts) {
      // Who has ended before the delay was never there.
      if (!alert.firing && alert.member && alert.joinsSec > sec) alert.member = false;
    }
    const there = alerts.filter(({ member, joinsSec }) => member && joinsSec <= sec);
    const heard = there.filter(({ held, told }) => told || !held);
    const firing = heard.filter((each) => each.firing && !each.held);
    const going = heard.filter((each) => each.firing);
    const ended = heard.filter((each) => !each.firing);
    const isTick = sec > lastFlushSec && (sec - lastFlushSec) % intervalSec === 0;
    const isRepeat = repeatSec > 0 && sec > messageSec && (sec - messageSec) % repeatSec === 0;
    if (!open) {
      // The wait counts from the first who has joined, also if it has ended.
      const joined = alerts.filter(({ member, joinsSec }) => member && joinsSec <= sec);
      firstSec = Number.POSITIVE_INFINITY;
      for (const { startSec, joinsSec } of joined)
        firstSec = Math.min(firstSec, startSec + waitSec <= joinsSec ? joinsSec : joinsSec + waitSec);
      if (sec < firstSec) continue;
      firstSec = Number.POSITIVE_INFINITY;
      if (firing.length > 0) {
        said.push(`${sec} first ${names(firing)}${sendUpdates ? `-${names(ended)}` : "-"}`);
        for (const alert of firing) alert.told = true;
        [open, lastFlushSec, messageSec] = [true, sec, sec];
      }
      for (const alert of alerts) if (!alert.firing) alert.member = false;
      continue;
    }
    if (!isTick && !isRepeat) continue;
    if (going.length === 0) {
      if (sendUpdates && ended.some(({ told }) => told)) said.push(`${sec} clear -${names(ended)}`);
      open = false;
      for (const alert of alerts) if (!alert.firing) Object.assign(alert, { member: false, told: false });
      continue;
    }
    const isNew = firing.some(({ told }) => !told);
    const hasEnded = sendUpdates && ended.length > 0;
    const repeats =
      isRepeat && firing.length > 0 && (!unacknowledged || going.some(({ acknowledged }) => !acknowledged));
    if (isNew || hasEnded || repeats) {
      said.push(
        `${sec} ${isNew || hasEnded ? "members" : "repeat"} ${names(firing)}${sendUpdates ? `-${names(ended)}` : "-"}`,
      );
      for (const alert of firing) alert.told = true;
      messageSec = sec;
    }
    for (const alert of alerts) if (!alert.firing) Object.assign(alert, { member: false, told: false });
    // A repetition counts as a flush.
    lastFlushSec = sec;
  }
  return said;
}
