import type { Reporter, TestCase } from "vitest/node";

/** The file of a test and its full name. */
const nameOf = ({ module, fullName }: TestCase) => `${module.relativeModuleId} > ${fullName.replaceAll("\n", " ")}`;

/** The first line of what a test or a file failed with, which may be long. */
const reasonOf = (errors: readonly { message: string }[] = []) =>
  errors[0]?.message.split("\n", 1)[0]?.slice(0, 300) ?? "";

/**
 * Writes `N passed, N failed[, N skipped]` as the very last line of a run, and before it a line `failed: <name>: <reason>` for each
 * test that failed, and `retried: <name>` for each that failed and then passed (CI alone tries again, once): what depends on the
 * machine is seen, and does not refuse a change.
 * A test file that does not load, an error outside all tests and a run without tests count as failed.
 */
export function closingLine(): Reporter {
  return {
    onTestRunEnd(modules, unhandledErrors, reason) {
      const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
      let failed = unhandledErrors.map((error) => `failed: outside of tests: ${reasonOf([error])}\n`).join("");
      let retried = "";
      for (const module of modules) {
        for (const test of module.children.allTests()) {
          const { state, errors } = test.result();
          count[state] += 1;
          if (state === "failed") failed += `failed: ${nameOf(test)}: ${reasonOf(errors)}\n`;
          if (test.diagnostic()?.flaky) retried += `retried: ${nameOf(test)}\n`;
        }
        for (const suite of [module, ...module.children.allSuites()]) {
          const errors = suite.errors();
          count.failed += errors.length;
          if (errors.length > 0) failed += `failed: ${module.relativeModuleId}: ${reasonOf(errors)}\n`;
        }
      }
      if (reason !== "passed" && count.failed === 0) count.failed = 1;
      const skipped = count.skipped + count.pending;
      const line = `${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`;
      // Other reporters and the teardown still write after this call.
      process.once("exit", () => process.stdout.write(failed + retried + line));
    },
  };
}
