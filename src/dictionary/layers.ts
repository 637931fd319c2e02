/** An entry of a tenant's own, as it is stored. */
export interface OwnRow {
  name: string;
  entry: object;
}

/** The default layer of one kind: its names in their order, the entries in the same order, and each by its name. */
export interface Shipped<E> {
  readonly names: readonly string[];
  readonly entries: readonly E[];
  get(name: string): E | undefined;
}

/** The default layer, made once from what ships with the service. @throws for a name that no two orders agree on, or twice */
export function defaultLayer<E>(
  defaults: readonly { name: string }[],
  toEntry: (name: string, said: object, layer: string) => E,
): Shipped<E> {
  const byName = new Map<string, E>();
  for (const { name, ...said } of defaults) {
    // Code points order ASCII as UTF-16 does, also beside other text, so that the merge below may compare with <.
    if (!/^[\x21-\x7e]+$/.test(name) || byName.has(name)) throw new Error(`${name}: no name for a default entry`);
    byName.set(name, toEntry(name, said, "DEFAULT"));
  }
  const names = [...byName.keys()].sort();
  return { names, entries: names.map((name) => byName.get(name) as E), get: (name) => byName.get(name) };
}

/** How a layer becomes the entries that are in effect. */
export interface Layering<E> {
  shipped: Shipped<E>;
  /** An entry of the tenant's own, from its row and the default entry that it overrides. */
  own(row: OwnRow, overridden: E | undefined): E;
}

/** The entry that is in effect for a name, if there is one. */
export function effective<E>({ shipped, own }: Layering<E>, name: string, row: OwnRow | undefined): E | undefined {
  const overridden = shipped.get(name);
  return row === undefined ? overridden : own(row, overridden);
}

/**
 * The entries that are in effect, one a name, in the order of names: of rows in that order and of all default entries
 * after the name `after`. No more than `max`, when the rows hold at least as many or all there are.
 */
export function mergeLayers<E>(
  { shipped, own }: Layering<E>,
  rows: readonly OwnRow[],
  after = "",
  max = Number.POSITIVE_INFINITY,
): E[] {
  const { names, entries } = shipped;
  const merged: E[] = [];
  let d = after === "" ? 0 : names.findIndex((name) => name > after);
  if (d < 0) d = names.length;
  for (const row of rows) {
    for (; d < names.length && (names[d] as string) < row.name; d++) merged.push(entries[d] as E);
    merged.push(own(row, names[d] === row.name ? entries[d++] : undefined));
  }
  for (; d < names.length && merged.length < max; d++) merged.push(entries[d] as E);
  return merged.length > max ? merged.slice(0, max) : merged;
}
