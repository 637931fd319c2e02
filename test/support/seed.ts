/**
 * Says where generated cases begin: at the place that a failure named, and else at another one in each run. In CI it is the same in all
 * runs, so that one commit passes or fails whenever it is looked at.
 */
export const seed = Number(process.env.FUZZ_SEED ?? (process.env.CI ? 1 : Math.trunc(Math.random() * 2 ** 31)));

/** How many times as many cases as usual. */
export const factor = Number(process.env.FUZZ_FACTOR ?? 1);
