const nameCharactersMax = 255;
const valueCharactersMax = 1024;
const longName = `the name of a label may have at most ${nameCharactersMax} characters`;
const longValue = `the value of a label may have at most ${valueCharactersMax} characters`;
/** The most bytes of a character in UTF-8. */
const characterBytes = 4;
/** What has more bytes is no name of a label or metric, and no value of a label. */
export const nameBytesMax = characterBytes * nameCharactersMax;
export const valueBytesMax = characterBytes * valueCharactersMax;
/** Labels that a series may have, beside what identifies its entity. */
const labelsMax = 64;

/** Whether a text has more characters, which are code points. */
function longer(text: string, max: number): boolean {
  if (text.length <= max || text.length > 2 * max) return text.length > max;
  let characters = text.length;
  for (let i = 0; i < text.length && characters > max; i++)
    if ((text.codePointAt(i) as number) > 0xffff) characters -= 1;
  return characters > max;
}

const noName = "the name of a label must not be empty";

/** Returns the rule that a label breaks by its bytes alone, before its texts are made. */
export function brokenBytes(nameBytes: number, valueBytes: number): string | undefined {
  if (nameBytes === 0) return noName;
  if (nameBytes > nameBytesMax) return longName;
  return valueBytes > valueBytesMax ? longValue : undefined;
}

/** What is wrong with a label alone; undefined: nothing. */
export function brokenLabel(name: string, value: string): string | undefined {
  if (name === "") return noName;
  if (longer(name, nameCharactersMax)) return longName;
  if (longer(value, valueCharactersMax)) return longValue;
  return name.includes("\0") || value.includes("\0") ? "labels must not contain NUL" : undefined;
}

/** What is wrong with the name of a metric. */
export function brokenMetric(metric: string): string | undefined {
  if (metric === "") return "the name of the metric must not be empty";
  if (longer(metric, nameCharactersMax))
    return `the name of the metric may have at most ${nameCharactersMax} characters`;
  return /\p{Cc}/u.test(metric) ? "the name of the metric must not contain control characters" : undefined;
}

/** What is wrong with this number of labels. */
export function brokenCount(labels: number): string | undefined {
  if (labels <= labelsMax) return undefined;
  return `a series may have at most ${labelsMax} labels beside those of its entity; this one has ${labels}`;
}
