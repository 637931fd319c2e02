const beganMs = performance.now();

/** Says on standard error what a bench does now, and how long it has run: the tables come at its end. */
export function progress(what: string): void {
  process.stderr.write(`  ${((performance.now() - beganMs) / 1000).toFixed(1).padStart(6)} s  ${what}\n`);
}
