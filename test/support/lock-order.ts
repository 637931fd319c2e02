/**
 * What statements lock, in the order in which all transactions must lock it (src/events/lock.ts). The first that fits a
 * statement counts.
 */
const ranks: readonly [what: string, statement: RegExp][] = [
  ["the feed", /\binto (?:tenant_state|feed)\b|\bfrom tenant_state where tenant_id = \$\d+ for no key update/],
  ["due work", /\binto due_work\b|\bfrom due_work\b.* for (?:no key )?update/],
  ["rows below events", /\b(?:into|update) (?:occurrences|instances|annotations)\b/],
  ["new events", /\binto events\b/],
  ["events", /\bfrom events\b.* for (?:no key )?update/],
  ["entities", /\b(?:into|update) entities\b|\bfrom entities\b.* for (?:no key )?update/],
  ["keys of entities", /\binto entity_keys\b/],
];

/** Looks at the statements of connections; returns what a statement locks too late, undefined when all is well. */
export function lockOrder(): (connection: number, text: string) => string | undefined {
  /** The lowest place among `ranks` so far, of connections within a transaction. */
  const lowest = new Map<number, number>();
  return (connection, text) => {
    const plain = text.replaceAll(/\s+/g, " ").trim().toLowerCase();
    if (/^begin\b/.test(plain)) lowest.set(connection, ranks.length);
    else if (/^(?:commit|rollback)\b/.test(plain)) lowest.delete(connection);
    const before = lowest.get(connection);
    if (before === undefined) return undefined;
    const rank = ranks.findIndex(([, statement]) => statement.test(plain));
    if (rank < 0) return undefined;
    if (rank > before) return `${ranks[rank]?.[0]} after ${ranks[before]?.[0]}: ${plain.slice(0, 200)}`;
    lowest.set(connection, rank);
    return undefined;
  };
}
