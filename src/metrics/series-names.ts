import { type Labels, namesText } from "./labels.ts";
import { agrees, type Notes, noNotes } from "./notes.ts";
import { setKey } from "./series-key.ts";

type Dimensions = Readonly<Record<string, string>>;

/** What a point names its series by. */
export interface SeriesNames {
  metric: string;
  dimensions: Record<string, string>;
  /** Absent: none. */
  labels?: Labels | undefined;
}

/** Sets `key` to names, and what is said of their series; false: no series has such names. */
export type NameSetter = (names: SeriesNames, said?: Notes) => boolean;

const scratch = Buffer.allocUnsafeSlow(16 * 1024);
const characterBytes = 3;

/** For one request: points of one entity that follow each other share its text. */
export function nameSetter(): NameSetter {
  const repeats = repeated();
  let entity = "";
  return ({ metric, dimensions, labels = {} }, said = noNotes) => {
    if (!repeats(dimensions)) entity = `${Object.keys(dimensions).length}${dimensionsKey(dimensions)}`;
    const { units, description, instrument } = said;
    const notes = agrees(noNotes, said) ? "" : `\0\0${units}\0${description}\0${instrument}`;
    // Names that have not been checked may hold the NUL that parts them: the numbers tell those from others.
    const text = `${entity}\0\0${Object.keys(labels).length} ${namesText(metric, labels)}${notes}`;
    if (!text.isWellFormed()) return false;
    if (text.length * characterBytes > scratch.length) setKey(Buffer.from(text));
    else setKey(scratch, 0, scratch.write(text));
    return true;
  };
}

/** What identifies an entity of a tenant: the dimensions in one order. NUL occurs in none of them. */
export function dimensionsKey(dimensions: Dimensions): string {
  const names = Object.keys(dimensions);
  if (names.length > 1) names.sort();
  let key = "";
  for (const name of names) key += `\0${name}\0${dimensions[name]}`;
  return key;
}

/** Reports whether dimensions are those of the call before: to compare them is cheaper than to join them. */
function repeated(): (dimensions: Dimensions) => boolean {
  let last: Dimensions = {};
  let lastCount = -1;
  return (dimensions) => {
    let count = 0;
    let same = true;
    for (const name in dimensions) {
      count += 1;
      if (last[name] !== dimensions[name]) same = false;
    }
    same &&= count === lastCount;
    last = dimensions;
    lastCount = count;
    return same;
  };
}
