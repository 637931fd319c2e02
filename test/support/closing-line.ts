import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { Reporter, TestCase, TestModule } from "vitest/node";

/** The file of a test and its full name. */
const nameOf = ({ module, fullName }: TestCase) => `${module.relativeModuleId} > ${fullName.replaceAll("\n", " ")}`;

/** The beginning of what a test or a file failed with, in one line. */
const reasonOf = (errors: readonly { message: string }[] = []) =>
  errors[0]?.message.replace(/\s*\n\s*/g, " | ").slice(0, 300) ?? "";

/** How many of the slowest files are named. */
const slowestMax = 10;

/** A line for each of the slowest files, with the time from its first import to its last test. None where a run has few files. */
function slowest(modules: readonly TestModule[]): string {
  if (modules.length <= slowestMax) return "";
  const timed = modules.map((module) => {
    const { collectDuration, duration } = module.diagnostic();
    return { path: module.relativeModuleId, ms: collectDuration + duration };
  });
  const named = timed.sort((a, b) => b.ms - a.ms).slice(0, slowestMax);
  return named.map(({ path, ms }) => `slowest: ${(ms / 1000).toFixed(1)} s ${path}\n`).join("");
}

/** Starts `npm run check` without the steps that are tests. Returns its output, and its steps with their ends. */
async function startCheck() {
  const child = spawn(process.execPath, ["scripts/check.ts", "--beside-tests"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  const steps = [...output.matchAll(/^(ok|FAILED) +(.*) \(/gm)].map(([, end, name]) => ({
    name,
    failed: end !== "ok",
  }));
  return { output, steps: steps.length > 0 ? steps : [{ name: "did not run", failed: true }] };
}

/**
 * Writes `N passed, N failed[, N skipped]` as the very last line of a run, and before it a line for each of the ten slowest files, a
 * line `failed: <name>: <reason>` for each test that failed.
 * A test file that does not load, an error outside all tests and a run without tests count as failed. With `check` the steps of
 * `npm run check` run beside the tests and count like them.
 */
export function closingLine({ check = false } = {}): Reporter {
  let checking: ReturnType<typeof startCheck> | undefined;
  return {
    onTestRunStart() {
      if (check) checking ??= startCheck();
    },
    async onTestRunEnd(modules, unhandledErrors, reason) {
      const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
      let failed = unhandledErrors.map((error) => `failed: outside of tests: ${reasonOf([error])}\n`).join("");
      for (const module of modules) {
        for (const test of module.children.allTests()) {
          const { state, errors } = test.result();
          count[state] += 1;
          if (state === "failed") failed += `failed: ${nameOf(test)}: ${reasonOf(errors)}\n`;
        }
        for (const suite of [module, ...module.children.allSuites()]) {
          const errors = suite.errors();
          count.failed += errors.length;
          if (errors.length > 0) failed += `failed: ${module.relativeModuleId}: ${reasonOf(errors)}\n`;
        }
      }
      if (reason !== "passed" && count.failed === 0) count.failed = 1;
      const { output = "", steps = [] } = (await checking) ?? {};
      for (const step of steps) {
        count[step.failed ? "failed" : "passed"] += 1;
        if (step.failed) failed += `failed: npm run check > ${step.name}\n`;
      }
      if (count.failed > 0) process.exitCode = 1;
      const skipped = count.skipped + count.pending;
      const line = `${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`;
      // Other reporters and the teardown still write after this call.
      process.once("exit", () => process.stdout.write(output + slowest(modules) + failed + line));
    },
  };
}
