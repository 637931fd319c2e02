/** Whether this run tries all cases of each property, as `npm run test:system` and `npm run fuzz` do. */
export const allCases = process.env.TEST_CASES === "all";

/** How many cases of a property this run tries: all, or a quarter. A file that imports this plays in both tiers. */
export const cases = (all: number): number => (allCases ? all : Math.ceil(all / 4));
