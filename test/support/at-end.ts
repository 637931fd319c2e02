import { afterAll, onTestFinished } from "vitest";

/** Has `end` run at the end of the test that calls this, or at the end of the file or the `describe` where none does. */
export function atEnd(end: () => unknown): void {
  try {
    // Within a test `afterAll` is taken and never called.
    onTestFinished(async () => void (await end()));
  } catch {
    afterAll(async () => void (await end()));
  }
}
