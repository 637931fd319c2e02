/** Whether this is the heavy part of the tests (`npm run test:heavy`): full sizes, all rounds, and bounds on time where a contract names one. */
export const heavy = process.env.TEST_PART === "heavy";

/**
 * A size, a number of rounds or a bound of each part of the tests. A file that imports this plays in both parts. In the light
 * part it shares the processors with other files: a bound on time is there only to end what hangs.
 */
export function sized<T>(light: T, full: T): T {
  return heavy ? full : light;
}
