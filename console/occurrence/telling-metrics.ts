/** Texts of an occurrence that may name what its metrics measure. */
export interface Telltale {
  readonly name: string;
  readonly summary: string;
  readonly labels: Readonly<Record<string, unknown>>;
  /** The metric of the trigger that made it. */
  readonly metric?: string | undefined;
}

interface Series {
  readonly metric: string;
  /** The metric's label, else its name. */
  readonly title: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Words for the same part of a system: an event of a disk is told by metrics of filesystems, too. */
const kin = [
  ["disk", "filesystem", "fs", "volume", "mount", "mountpoint", "inode", "partition", "storage"],
  ["memory", "mem", "ram", "swap", "oom"],
  ["cpu", "processor", "load", "throttled"],
  ["network", "net", "interface", "nic", "link", "carrier", "packet"],
  ["latency", "duration", "slow", "delay", "lag"],
  ["http", "request", "response"],
];
const kinOf = new Map(kin.flatMap((words) => words.map((word) => [word, words] as const)));

/** Words that any event or metric may have. */
const common = new Set(
  (
    "the and for are not has have with from than over under of to in is on at by it no be as or high low more less " +
    "total byte second minute hour percent ratio count sum value"
  ).split(" "),
);

/** Longer values of labels are no names. */
const labelCharsMax = 256;
const [ofName, ofSummary, ofLabels] = [4, 2, 1];

/** The words of a text, lower-case and singular: `NodeDisksFull` and `node_disk.full` have the same. */
function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll})(?=\p{Lu})/gu, "$1 ")
    .toLowerCase()
    .split(/[^\p{L}\d]+/u)
    .map((word) => (word.length > 3 ? word.replace(/(?<=[^su])s$/, "") : word))
    .filter((word) => word.length > 1 && !/^\d+$/.test(word) && !common.has(word));
}

/** Weighs the words of an occurrence; kin of a word weigh half of it. */
function weightsOf({ name, summary, labels }: Telltale): ReadonlyMap<string, number> {
  const labelled = Object.entries(labels).flatMap(([key, value]) =>
    typeof value !== "string" || value.length > labelCharsMax || /^https?:/.test(value) ? [] : [key, value],
  );
  const weights = new Map<string, number>();
  const weigh = (word: string, weight: number) => weights.set(word, Math.max(weights.get(word) ?? 0, weight));
  for (const [text, weight] of [
    [name, ofName] as const,
    [summary, ofSummary] as const,
    [labelled.join(" "), ofLabels] as const,
  ])
    for (const word of wordsOf(text)) {
      weigh(word, weight);
      for (const other of kinOf.get(word) ?? []) weigh(other, weight / 2);
    }
  return weights;
}

/**
 * Orders an entity's series by how much they tell about an occurrence: those of the trigger's metric, then by the words that
 * metrics share with it. Of equal metrics each shows one series, the one that shares most labels, before any shows its second;
 * otherwise the order stays.
 */
export function tellingFirst<T extends Series>(series: readonly T[], telltale: Telltale): T[] {
  const weights = weightsOf(telltale);
  const sharedLabels = ({ labels }: T) =>
    Object.entries(labels).filter(([key, value]) => telltale.labels[key] === value).length;
  const ranked = [...Map.groupBy(series, ({ metric }) => metric)].flatMap(([metric, own]) => {
    const words = new Set(wordsOf(`${metric} ${own[0]?.title}`));
    const score =
      metric === telltale.metric
        ? Number.POSITIVE_INFINITY
        : [...words].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0);
    return own.toSorted((a, b) => sharedLabels(b) - sharedLabels(a)).map((each, turn) => ({ each, score, turn }));
  });
  // Infinities have no difference.
  const byScore = (a: number, b: number) => (a === b ? 0 : b - a);
  return ranked.toSorted((a, b) => byScore(a.score, b.score) || a.turn - b.turn).map(({ each }) => each);
}
