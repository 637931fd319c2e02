import type { Reporter, TestCase } from "vitest/node";

/** The file of a test and its full name. */
const nameOf = ({ module, fullName }: TestCase) => `${module.relativeModuleId} > ${fullName.replaceAll("\n", " ")}`;

/**
 * Writes `N passed, N failed[, N skipped]` as the very last line of a run, and before it a line `retried: <name>` for each test that
 * failed and then passed (CI alone tries again, once): what depends on the machine is seen, and does not refuse a change.
 * A test file that does not load, an error outside all tests and a run without tests count as failed.
 */
export function closingLine(): Reporter {
  return {
    onTestRunEnd(modules, unhandledErrors, reason) {
      const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
      let retried = "";
      for (const module of modules) {
        for (const test of module.children.allTests()) {
          count[test.result().state] += 1;
          if (test.diagnostic()?.flaky) retried += `retried: ${nameOf(test)}\n`;
        }
        for (const suite of [module, ...module.children.allSuites()]) count.failed += suite.errors().length;
      }
      if (reason !== "passed" && count.failed === 0) count.failed = 1;
      const skipped = count.skipped + count.pending;
      const line = `${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`;
      // Other reporters and the teardown still write after this call.
      process.once("exit", () => process.stdout.write(retried + line));
    },
  };
}
