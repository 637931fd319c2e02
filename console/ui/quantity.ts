const bytes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** A value as people read it: `20.2 %`, `16.0 GiB`. Tables have all of its digits. */
export function quantityText(value: number | null | undefined, units: string): string {
  if (value === undefined || value === null) return "–";
  if (units === "%") return `${value.toFixed(1)} %`;
  const [, per = ""] = /^By(\/s)?$/.exec(units) ?? [];
  if (units !== `By${per}`) return `${few.format(value)}${units === "" || units === "1" ? "" : ` ${units}`}`;
  const size = Math.abs(value) < 1 ? 0 : Math.floor(Math.log2(Math.abs(value)) / 10);
  const step = Math.min(size, bytes.length - 1);
  return `${(value / 1024 ** step).toFixed(step === 0 ? 0 : 1)} ${bytes[step]}${per}`;
}

const words: Readonly<Record<string, string>> = {
  By: "bytes",
  "By/s": "bytes per second",
  "%": "percent",
  s: "seconds",
  ms: "milliseconds",
  us: "microseconds",
  Cel: "degrees Celsius",
  Hz: "hertz",
  "1": "",
};

/** A unit in words; one that is not known as it is written. */
export const unitWords = (units: string) => words[units] ?? units;

/** A count as people read it: `2,661`. */
export const countText = (count: number | bigint) => count.toLocaleString("en");
