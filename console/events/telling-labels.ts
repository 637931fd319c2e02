import { labelNames } from "./label-names.ts";
import type { EventRow } from "./list-rows.ts";
import { ownFacets } from "./own-facets.ts";

/** Labels by which most people tell events of one name apart. */
const known = ["namespace", "pod", "container", "instance", "device", "mountpoint", "service", "team"];
/** Labels that an event's own columns show. */
const shownAnyway = ["alertname", "severity", "type"];

/** The labels that rows are told apart by, those that say most first: a person's own, known ones, and what others were heard of. Reads signals. */
export function tellingKeys(): string[] {
  return [...new Set([...ownFacets(), ...known, ...labelNames.value])].filter((key) => !shownAnyway.includes(key));
}

/** Most rows that are looked at, and most of one name whose labels are compared. */
const lookedAtMax = 500;
const comparedMax = 40;
const labelsMax = 3;
/** Longer values tell nothing in a row. */
const charsMax = 64;

/** Labels that tell the rows of a list apart. */
interface Telling {
  /** At most three labels for each event's name: its rows differ in them, and each tells more of these rows apart. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  /** Some rows of one entity do not differ in any label. */
  readonly alike: boolean;
}

/** Finds the labels by which events of one name differ in this list, the first of `keys` first. */
export function tellingLabels(rows: readonly EventRow[], keys: readonly string[]): Telling {
  const labels = new Map<string, readonly string[]>();
  let alike = false;
  for (const [name, all] of Map.groupBy(rows.slice(0, lookedAtMax), ({ event }) => event.name ?? "")) {
    const compared = all.slice(0, comparedMax);
    const differing: string[] = [];
    let apart = 1;
    for (const key of keys) {
      if (differing.length === labelsMax) break;
      const more = countApart(compared, [...differing, key]);
      if (more === apart) continue;
      differing.push(key);
      apart = more;
    }
    labels.set(name, differing);
    alike ||= countApart(compared, differing, ({ event }) => event.entity) < compared.length;
  }
  return { labels, alike };
}

/** Counts the distinct combinations of these labels' values among the rows, with what `more` returns. */
function countApart(rows: readonly EventRow[], keys: readonly string[], more?: (row: EventRow) => unknown): number {
  return new Set(rows.map((row) => JSON.stringify([more?.(row), ...keys.map((key) => labelOf(row, key))]))).size;
}

function labelOf({ occurrence }: EventRow, key: string): string | undefined {
  const value = occurrence.metadataFields?.[key];
  return typeof value === "string" && value.length < charsMax ? value : undefined;
}
