import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { computed, signal } from "@preact/signals";
import { inSight } from "../data/in-sight.ts";
import { zone } from "../data/preferences.ts";
import ui from "./ui.module.css";

/** How far the present moves at once. */
export const tickMs = 10_000;

/** The present, which moves every ten seconds while the page is in sight. */
export const nowMs = signal(Date.now());

/** Moves the present. Called once, at the start. */
export function startClock(): void {
  setInterval(() => {
    if (inSight.peek()) nowMs.value = Date.now();
  }, tickMs);
}

export const zoneName = computed(() =>
  zone.value === "UTC" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone,
);

const absolute = computed(
  () => new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zoneName.value }),
);
const withZone = computed(
  () => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long", timeZone: zoneName.value }),
);

/** A moment as texts show it, in the person's zone. */
export const timeText = (ms: number) => absolute.value.format(ms);

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });
const steps = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1000, "second"],
] as const;

/** Returns the distance of a moment from the present. The server's clock may be ahead: a moment within the next minute is now. */
export function agoText(ms: number): string {
  const apart = ms - presentMs();
  return apart > 0 && apart < 60_000 ? "now" : apartText(apart);
}

/** Returns the time left until a moment. */
const dueText = (ms: number) => apartText(ms - presentMs());

/** The present at this moment; who reads it is drawn again as it moves. */
function presentMs(): number {
  nowMs.value;
  return Date.now();
}

function apartText(apart: number): string {
  for (const [size, unit] of steps) {
    if (Math.abs(apart) >= size) return relative.format(Math.trunc(apart / size), unit);
  }
  return "now";
}

/** A length of time in its two largest units. */
export function durationText(ms: number): string {
  const parts = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
  ] as const;
  let rest = Math.max(0, ms);
  const texts: string[] = [];
  for (const [size, unit] of parts) {
    const whole = Math.floor(rest / size);
    if (whole > 0) texts.push(`${whole} ${unit}`);
    rest -= whole * size;
  }
  return texts.slice(0, 2).join(" ") || `${Math.round(rest)} ms`;
}

interface TimeProps {
  readonly at: Moment | undefined;
  /** Shows how long ago it was alone, and keeps the moment for the pointer. */
  readonly short?: boolean;
  /** Shows for how long alone, as in `3h`. */
  readonly age?: boolean;
  /** It is to come: seconds count. */
  readonly due?: boolean;
}

/** A moment as messages of the API hold it: ms since the epoch, or a timestamp. */
export type Moment = bigint | number | Timestamp;

export const msOf = (at: Moment) => (typeof at === "object" ? timestampMs(at) : Number(at));

/** A moment: absolute, with how far it is from the present. */
export function Time({ at, short, age, due }: TimeProps) {
  if (at === undefined) return <span class={ui.quiet}>–</span>;
  const ms = msOf(at);
  if (Number.isNaN(new Date(ms).getTime())) return <span>{String(ms)}</span>;
  const iso = new Date(ms).toISOString();
  const apart = due ? dueText(ms) : age ? agoText(ms).replace(/ ago$/, "") : agoText(ms);
  if (short || age) {
    return (
      <time dateTime={iso} title={withZone.value.format(ms)}>
        {apart}
      </time>
    );
  }
  return (
    <time dateTime={iso} title={withZone.value.format(ms)}>
      {timeText(ms)} <span class={ui.quiet}>{apart}</span>
    </time>
  );
}
