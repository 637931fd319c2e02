/*
 * What tests leave behind in a process before the server's code is loaded: test/faults/preload.ts by `node --import`,
 * test/support/collect-statements.ts in the test runner. No setting and no argument of the service leads here, so
 * production cannot come here by accident.
 */
const left = globalThis as { [name: symbol]: ((...args: never[]) => void) | undefined };
const reached = left[Symbol.for("belfry.failpoint")] as ((name: string) => void) | undefined;

/** Sees each statement that this process runs, when a test wants to: the driver's option `debug`. */
export const statementRan = left[Symbol.for("belfry.statement")] as
  | ((connection: number, statement: string, parameters: unknown[]) => void)
  | undefined;

/** Marks a place where a fault test may end, hold or fail this process. Does nothing otherwise. */
export function failpoint(name: string): void {
  reached?.(name);
}
