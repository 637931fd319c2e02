/** Whether this run takes all cases, rounds and sizes: `npm run test:nightly` sets NIGHTLY=1. */
export const nightly = process.env.NIGHTLY === "1";

/**
 * Where random choices begin: SEED, which a nightly run draws and prints. Without it they are the same in every run, so that one
 * commit passes or fails whenever it is looked at.
 */
export const seed = Number(process.env.SEED ?? 1);

/** How many cases of a property this run tries: a quarter of `all`, or five times as many as `all` in a nightly run. */
export const cases = (all: number): number => (nightly ? 5 * all : Math.ceil(all / 4));

/** How many rounds of a fault scene this run plays: `few`, or four times as many in a nightly run. */
export const rounds = (few: number): number => (nightly ? 4 * few : few);

/** Returns each entry in a nightly run, else the first one and each `step`-th after it. */
export const extract = <T>(all: readonly T[], step: number): T[] => all.filter((_, i) => nightly || i % step === 0);
