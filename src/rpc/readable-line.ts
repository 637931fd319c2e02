const levels: Readonly<Record<number, string>> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

/** Turns a line of the log, JSON, into one that people read: local time, level, message and the other fields; stacks go below it. */
export function readableLine(line: string): string {
  const { level, time, msg = "", ...fields } = JSON.parse(line) as Record<string, unknown>;
  const { stacks, shown } = partsOf(fields);
  const at = timeOfDay(new Date(Number(time)));
  const head = [at, (levels[Number(level)] ?? String(level)).padEnd(5), safe(String(msg)), ...shown].filter(Boolean);
  return `${[head.join(" "), ...stacks].join("\n")}\n`;
}

function timeOfDay(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** Shows fields as `name=value`, those of objects as `outer.name=value`. */
function partsOf(fields: Readonly<Record<string, unknown>>, outer = ""): { shown: string[]; stacks: string[] } {
  const shown: string[] = [];
  const stacks: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    if (value === null || value === undefined) continue;
    const name = outer + key;
    if (key === "stack" && typeof value === "string")
      stacks.push(...value.split("\n").map((each) => `  ${safe(each)}`));
    else if (typeof value === "object" && !Array.isArray(value)) {
      const inner = partsOf(value as Record<string, unknown>, `${name}.`);
      shown.push(...inner.shown);
      stacks.push(...inner.stacks);
    } else shown.push(`${name}=${plain(value)}`);
  }
  return { shown, stacks };
}

function plain(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return safe(typeof value === "string" && !/^[^\s"=]+$/.test(text) ? JSON.stringify(text) : text);
}

/** Takes away what a terminal would obey: a text of a request may be in the log. */
const safe = (text: string) => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "·");
