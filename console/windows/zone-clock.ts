const minuteMs = 60_000;

const parts = (timeZone: string) =>
  new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone });

/** What the clock of a zone shows, as `2027-03-28T03:30`, the form of an input. A zone that is none: UTC. */
export function clockText(ms: number, timeZone: string): string {
  return formatter(timeZone).format(ms).slice(0, 16).replace(" ", "T");
}

function formatter(timeZone: string): Intl.DateTimeFormat {
  try {
    return parts(timeZone || "UTC");
  } catch {
    return parts("UTC");
  }
}

/**
 * The first moment at which the clock of a zone shows this text; a time that is left out when the clock is put forward comes as much
 * later. Undefined: no such text.
 */
export function momentOf(text: string, timeZone: string): number | undefined {
  const wall = Date.parse(`${text}Z`);
  if (Number.isNaN(wall)) return undefined;
  const offsetAt = (ms: number) => Date.parse(`${clockText(ms, timeZone)}Z`) - Math.floor(ms / minuteMs) * minuteMs;
  const offsets = [offsetAt(wall - 86_400_000), offsetAt(wall + 86_400_000)];
  const moments = offsets.map((offset) => wall - offset).sort((a, b) => a - b);
  return moments.find((ms) => clockText(ms, timeZone) === text.slice(0, 16)) ?? wall - (offsets[0] ?? 0);
}

const weekdays = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});

/** A local time as the server writes it, `2027-03-28T03:30:00+02:00`, in its parts. */
export function localParts(text: string): { date: string; time: string; offset: string } {
  const [, date = "", time = "", offset = ""] =
    /^(.{10})T(\d\d:\d\d(?::(?!00)\d\d)?).*?([+-]\d\d:\d\d)$/.exec(text) ?? [];
  const day = Date.parse(`${date}T00:00Z`);
  return { date: Number.isNaN(day) ? text : weekdays.format(day).replaceAll(",", ""), time, offset: `UTC${offset}` };
}
