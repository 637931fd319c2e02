/*
 * A fault test loads test/faults/preload.ts into its server processes (`node --import`), which leaves a function under
 * this symbol. No setting and no argument of the service leads here, so production cannot come here by accident.
 */
const reached = (globalThis as { [name: symbol]: ((name: string) => void) | undefined })[
  Symbol.for("belfry.failpoint")
];

/** Marks a place where a fault test may end, hold or fail this process. Does nothing otherwise. */
export function failpoint(name: string): void {
  reached?.(name);
}
