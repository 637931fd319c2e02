/** A set of code points: ranges in order that neither touch nor overlap. */
export type CharacterSet = readonly (readonly [first: number, last: number])[];

const lastCodePoint = 0x10ffff;

/** The set of all code points in some ranges, which may overlap. */
export function setOf(ranges: Iterable<readonly [number, number]>): CharacterSet {
  const merged: [number, number][] = [];
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** The set of some characters and ranges, written `a-z0-9_`; the first character may be a hyphen. */
export function charactersOf(text: string): CharacterSet {
  const points = Array.from(text, (character) => character.codePointAt(0) as number);
  const ranges: [number, number][] = [];
  for (let i = 0; i < points.length; i++) {
    const first = points[i] as number;
    const isRange = points[i + 1] === 0x2d && i + 2 < points.length;
    ranges.push([first, isRange ? (points[i + 2] as number) : first]);
    if (isRange) i += 2;
  }
  return setOf(ranges);
}

/** Every other code point. */
export function inverse(set: CharacterSet): CharacterSet {
  const gaps: [number, number][] = [];
  let next = 0;
  for (const [first, last] of set) {
    if (first > next) gaps.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= lastCodePoint) gaps.push([next, lastCodePoint]);
  return gaps;
}

/** The set with the other case of its ASCII letters. */
export function withBothCases(set: CharacterSet): CharacterSet {
  const shifted = (from: string, to: string, by: number) =>
    set.flatMap(([first, last]): [number, number][] => {
      const low = Math.max(first, from.charCodeAt(0));
      const high = Math.min(last, to.charCodeAt(0));
      return low <= high ? [[low + by, high + by]] : [];
    });
  return setOf([...set, ...shifted("A", "Z", 32), ...shifted("a", "z", -32)]);
}

/** Without what no stored text holds: NUL and the halves of surrogate pairs. */
export function storableCharacters(set: CharacterSet): CharacterSet {
  const parts = [
    [1, 0xd7ff],
    [0xe000, lastCodePoint],
  ] as const;
  return parts.flatMap(([from, to]) =>
    set.flatMap(([first, last]): [number, number][] => {
      const low = Math.max(first, from);
      const high = Math.min(last, to);
      return low <= high ? [[low, high]] : [];
    }),
  );
}
