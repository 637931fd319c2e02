import fc from "fast-check";

/** One thing that happens, so many seconds after the one before: `move` changes the label by which members are grouped. */
export interface Act {
  readonly afterSec: number;
  readonly member: number;
  readonly what: "fire" | "end" | "acknowledge" | "hold" | "release" | "move";
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
      what: fc.constantFrom("fire", "fire", "end", "end", "acknowledge", "hold", "release", "move"),
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
  /** By its label. */
  group: number;
  startSec: number;
}

interface Membership {
  joinsSec: number;
  /** Whether a message said that it fires, and none that it has ended. */
  told: boolean;
  /** Whether a message said since then that all others had ended. */
  again: boolean;
}

interface Group {
  open: boolean;
  lastFlushSec: number;
  messageSec: number;
  /** Those that belong to it, though they may have ended. */
  readonly members: Map<Alert, Membership>;
}

/** Groups as the documentation tells them: each is looked at in every second, and keeps what it has said. */
export function model(of: Story, untilSec = spanSec): string[] {
  const alerts = Array.from(
    { length: membersMax },
    (): Alert => ({ firing: false, acknowledged: false, held: false, group: 0, startSec: 0 }),
  );
  const groups = [0, 1].map((): Group => ({ open: false, lastFlushSec: 0, messageSec: 0, members: new Map() }));
  const said: string[] = [];
  const acts = happenings(of);
  for (let sec = 1; sec < untilSec; sec++) {
    for (const { member, what } of acts.get(sec) ?? []) happens(alerts[member] as Alert, what, { of, groups, sec });
    for (const [i, group] of groups.entries()) {
      const isIn = (alert: Alert) => alert.firing && alert.group === i;
      // Who has ended, or left, before the delay was never there.
      for (const [alert, { joinsSec }] of group.members)
        if (!isIn(alert) && joinsSec > sec) group.members.delete(alert);
      const there = new Map(
        alerts.flatMap((alert) => {
          const own = group.members.get(alert);
          return own && own.joinsSec <= sec ? [[alert, own] as const] : [];
        }),
      );
      const line = looks(group, there, isIn, of, sec);
      const names = (list: readonly Alert[]) => list.map((each) => alerts.indexOf(each)).join("");
      if (line)
        said.push(`${sec} ${i} ${line.occasion} ${names(line.firing)}-${of.sendUpdates ? names(line.ended) : ""}`);
    }
  }
  return said;
}

function happens(
  alert: Alert,
  what: Act["what"],
  { of: { delaySec }, groups, sec }: { of: Story; groups: readonly Group[]; sec: number },
): void {
  const own = () => (groups[alert.group] as Group).members;
  // Who ends, or leaves, while it is held was never there.
  const leaves = () => {
    if (alert.held && own().get(alert)?.told === false) own().delete(alert);
  };
  if (what === "acknowledge") alert.acknowledged = alert.firing;
  if (what === "release") alert.held = false;
  if (what === "hold") alert.held = alert.firing;
  if (what === "end" && alert.firing) {
    leaves();
    alert.firing = false;
  }
  if (what === "move" && alert.firing) {
    leaves();
    alert.group = 1 - alert.group;
    if (!own().has(alert))
      own().set(alert, { joinsSec: Math.max(sec, alert.startSec + delaySec), told: false, again: false });
  }
  if (what === "fire" && !alert.firing) {
    Object.assign(alert, { firing: true, held: false, acknowledged: false, startSec: sec });
    const before = own().get(alert);
    const stays = before !== undefined && (before.told || delaySec === 0);
    if (!stays) own().set(alert, { joinsSec: sec + delaySec, told: false, again: false });
  }
}

/** What a group says in a second, of those that have joined; undefined: nothing. */
function looks(
  group: Group,
  there: ReadonlyMap<Alert, Membership>,
  isIn: (alert: Alert) => boolean,
  { waitSec, intervalSec, sendUpdates, repeatSec, unacknowledged }: Story,
  sec: number,
): { occasion: string; firing: Alert[]; ended: Alert[] } | undefined {
  const heard = [...there].filter(([{ held }, { told }]) => told || !held);
  const firing = heard.filter(([alert]) => isIn(alert) && !alert.held);
  const going = heard.filter(([alert]) => isIn(alert));
  const ended = heard.filter(([alert]) => !isIn(alert));
  const lists = { firing: firing.map(([alert]) => alert), ended: ended.map(([alert]) => alert) };
  const forget = () => {
    for (const alert of there.keys()) if (!isIn(alert)) group.members.delete(alert);
  };
  if (!group.open) {
    // The wait counts from the first who has joined, also if it has ended; who is held has not.
    const waits = [...there].filter(([{ held }]) => !held);
    const firstSec = waits.map(([{ startSec }, { joinsSec }]) =>
      startSec + waitSec <= joinsSec ? joinsSec : joinsSec + waitSec,
    );
    if (sec < Math.min(...firstSec)) return undefined;
    forget();
    if (firing.length === 0) return undefined;
    for (const [, membership] of firing) membership.told = true;
    Object.assign(group, { open: true, lastFlushSec: sec, messageSec: sec });
    return { occasion: "first", ...lists };
  }
  const isTick = sec > group.lastFlushSec && (sec - group.lastFlushSec) % intervalSec === 0;
  const isRepeat = repeatSec > 0 && sec > group.messageSec && (sec - group.messageSec) % repeatSec === 0;
  if (!isTick && !isRepeat) return undefined;
  forget();
  if (going.length === 0) {
    group.open = false;
    return sendUpdates && ended.length > 0 ? { occasion: "clear", ...lists } : undefined;
  }
  const isNew = firing.some(([, { told, again }]) => !told || again);
  const hasEnded = sendUpdates && ended.length > 0;
  const repeats =
    isRepeat && firing.length > 0 && (!unacknowledged || going.some(([{ acknowledged }]) => !acknowledged));
  // A repetition counts as a flush.
  group.lastFlushSec = sec;
  if (!isNew && !hasEnded && !repeats) return undefined;
  group.messageSec = sec;
  for (const [, membership] of firing) Object.assign(membership, { told: true, again: false });
  // It said that all had ended; the others are held, and fire on.
  if (firing.length === 0) for (const [, membership] of going) membership.again = true;
  return { occasion: isNew || hasEnded ? "members" : "repeat", ...lists };
}
