const listedMax = 10;
const charactersMax = 300;

/** What is wrong with items, the first ten of them, and how many more there are. */
export function rejections(mistakes: readonly string[]): string {
  const first = mistakes
    .slice(0, listedMax)
    .map((text) => (text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text));
  const more = mistakes.length - first.length;
  return [...first, ...(more > 0 ? [`and ${more} more`] : [])].join("; ").toWellFormed();
}
