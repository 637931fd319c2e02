const form = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:([Zz])|([+-])(\d\d):?(\d\d))?$/;

/** A time in RFC 3339 as ms since the epoch; undefined for the zero time and for none at all, `null` for what is no time. */
export function parseTime(text: string): number | undefined | null {
  if (text === "") return undefined;
  const [
    ,
    year = "",
    month = "",
    day = "",
    hour = "",
    minute = "",
    second = "",
    fraction = "",
    ,
    sign,
    h = "0",
    m = "0",
  ] = form.exec(text) ?? [];
  if (year === "") return null;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return null;
  const ofDay =
    Number(hour) * 3_600_000 + Number(minute) * 60_000 + Number(second) * 1000 + Number(`0.${fraction || 0}`) * 1000;
  const offsetMs = (Number(h) * 60 + Number(m)) * 60_000 * (sign === "-" ? -1 : 1);
  const ms = Math.floor(date.getTime() + ofDay - offsetMs);
  return Number(year) <= 1 ? undefined : ms;
}

/** A time as Alertmanager writes it: RFC 3339 with ms. */
export const timeText = (ms: number): string => new Date(ms).toISOString();
