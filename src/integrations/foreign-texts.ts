// Texts of other tools are made to fit, not refused: what they report is worth more than its last characters.

/** A text of at most `charactersMax` characters, the last one `…` where it was cut. */
export function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  return apart(`${whole(text.slice(0, charactersMax - 1))}…`);
}

/** A copy: what is cut off a long text would keep all of it in memory. */
const apart = (text: string) => Buffer.from(text, "utf16le").toString("utf16le");

/** A text of at most `bytesMax` bytes in UTF-8, cut the same way. */
export function cutBytes(text: string, bytesMax: number): string {
  if (text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax) return text;
  const bytes = Buffer.from(text.slice(0, bytesMax)).subarray(0, bytesMax - 3);
  return `${bytes.toString("utf8").replace(/\uFFFD+$/, "")}…`;
}

/** Without the half of a character at its end. */
const whole = (text: string) => text.replace(/[\ud800-\udbff]$/, "");

/** A text of one line: control characters become blanks. */
export function oneLine(text: string): string {
  return /\p{Cc}/u.test(text) ? text.replaceAll(/\p{Cc}/gu, " ") : text;
}

/** The same, but ends of lines and tabs stay. */
export function lines(text: string): string {
  if (!/[^\P{Cc}\n\t]/u.test(text)) return text;
  return text.replaceAll("\r\n", "\n").replaceAll(/[^\P{Cc}\n\t]/gu, " ");
}
