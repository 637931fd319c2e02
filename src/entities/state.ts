/** The production state of an entity whose model names none. */
export const PRODUCTION = 1000n;
/** The priority of an entity whose model names none. */
export const PRIORITY = 3n;

/** A number of metadata, where it is whole and no double misses it; else `fallback`. */
export function wholeNumber(value: unknown, fallback: bigint): bigint {
  return Number.isSafeInteger(value) ? BigInt(value as number) : fallback;
}
