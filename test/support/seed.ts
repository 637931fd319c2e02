/** Where generated cases begin: another place each run, or the one that a failure named. */
export const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31));

/** How many times as many cases as usual. */
export const factor = Number(process.env.FUZZ_FACTOR ?? 1);
