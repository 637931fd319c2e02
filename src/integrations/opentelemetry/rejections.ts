const listedMax = 10;
const charactersMax = 300;

/** Gathers what is wrong with items: the first ten of them, and how many more there are. */
export function rejections() {
  const first: string[] = [];
  let count = 0;
  return {
    add(name: string, rule: string) {
      count += 1;
      if (count > listedMax) return;
      const text = `${name}: ${rule}`;
      first.push(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
    },
    get count() {
      return count;
    },
    /** Empty without any. */
    text: () => [...first, ...(count > listedMax ? [`and ${count - listedMax} more`] : [])].join("; ").toWellFormed(),
  };
}
