/** `; did you mean "…"?` with the candidate nearest to an unknown name; "" when none is near. */
export function didYouMean(name: string, candidates: readonly string[]): string {
  if (name.length > 64) return "";
  const wanted = plain(name);
  let best = "";
  let bestDistance = Math.min(4, Math.floor(name.length / 2) + 1);
  for (const candidate of candidates.slice(0, 500)) {
    const known = plain(candidate);
    // A name without its prefix (RED for COLOR_RED) or its end, also in the plural (rules for ruleNames), is as good as a slip
    // of one letter.
    const part = wanted.length > 2 && (known.endsWith(wanted) || known.startsWith(wanted.replace(/(?<=..)s$/, "")));
    const distance = part ? 1 : editDistance(wanted, known, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best === "" ? "" : `; did you mean ${JSON.stringify(best)}?`;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll("_", "");
}

/** Levenshtein's distance, or `bound` when it is not below that. */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, (above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
  }
  return row[b.length] ?? bound;
}
