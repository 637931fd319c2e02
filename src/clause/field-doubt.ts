/**
 * Says which of these keys without a prefix was hardly meant: one letter away from one of the names that are `known`, or another in case
 * alone; empty: none is.
 */
export function fieldDoubt(keys: readonly string[], known: readonly string[]): string {
  const long = known.filter(({ length }) => length >= 4);
  for (const key of keys) {
    const meant = key.length < 4 ? undefined : long.find((name) => isSlip(key.toLowerCase(), name.toLowerCase()));
    if (meant !== undefined)
      return `it looks at ${JSON.stringify(key)}, which only a dimension or metadata can be; did you mean ${JSON.stringify(meant)}?`;
  }
  return "";
}

/** Tells whether one letter more, less, other or exchanged with the next makes one text of the other. */
function isSlip(one: string, other: string): boolean {
  // Hardly anyone mistakes the first; `mount` is not meant for `count`.
  if (one[0] !== other[0]) return false;
  let from = 1;
  while (from < one.length && one[from] === other[from]) from++;
  const [rest, otherRest] = [one.slice(from), other.slice(from)];
  return (
    rest.slice(1) === otherRest.slice(1) ||
    rest.slice(1) === otherRest ||
    rest === otherRest.slice(1) ||
    (rest[0] === otherRest[1] && rest[1] === otherRest[0] && rest.slice(2) === otherRest.slice(2))
  );
}
