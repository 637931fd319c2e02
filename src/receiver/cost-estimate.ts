/** What transactions of one lane have taken of late. */
export interface CostEstimate {
  /** A transaction of this many items took this long. */
  note(items: number, ms: number): void;
  /** What this many items in this many transactions would take, ms. */
  expect(transactions: number, items: number): number;
}

/** How much an observation still counts after the next one. */
const keep = 0.9;
/**
 * What is taken for granted at first, and counts as much as a few observations: small and large transactions, ms. The first
 * ones that a process runs take several times as long as those a second later, and must not make it refuse what is quick by then.
 */
const prior: readonly (readonly [items: number, ms: number])[] = [
  [1, 3],
  [1000, 100],
];
const priorWeight = 3;

/** Moving averages of the fixed cost of a transaction and of the cost of an item: a line through what was seen. */
export function costEstimate(): CostEstimate {
  let weight = 0;
  let items = 0;
  let ms = 0;
  let itemsItems = 0;
  let itemsMs = 0;

  function add(n: number, t: number, by: number) {
    weight += by;
    items += by * n;
    ms += by * t;
    itemsItems += by * n * n;
    itemsMs += by * n * t;
  }
  for (const [n, t] of prior) add(n, t, priorWeight);

  function line() {
    const spread = weight * itemsItems - items * items;
    const each = spread > 0 ? Math.max(0, (weight * itemsMs - items * ms) / spread) : 0;
    return { each, fixed: Math.max(0.1, (ms - each * items) / weight) };
  }

  return {
    note(n, t) {
      weight *= keep;
      items *= keep;
      ms *= keep;
      itemsItems *= keep;
      itemsMs *= keep;
      // What was taken for granted fades as well, but never so far that sizes which are all the same leave no line.
      for (const [priorItems, priorMs] of prior) add(priorItems, priorMs, (1 - keep) * 0.01);
      add(n, t, 1);
    },
    expect(transactions, count) {
      const { fixed, each } = line();
      return transactions * fixed + count * each;
    },
  };
}
