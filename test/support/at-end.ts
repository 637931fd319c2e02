import { afterAll, onTestFinished } from "vitest";

/**
 * Has `end` run at the end of the test, or its `beforeEach`, that calls this; at the end of the file or `describe` where it is called there.
 * Not for `beforeAll`, where Vitest takes no further hooks, nor for tests that run at once.
 */
export function atEnd(end: () => unknown): void {
  try {
    // Within a test `afterAll` is taken and never called.
    onTestFinished(async () => void (await end()));
  } catch {
    afterAll(async () => void (await end()));
  }
}
