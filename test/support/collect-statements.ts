// Runs before each test file: writes down every statement that the file's code sends to PostgreSQL.
import { appendFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, inject } from "vitest";
import { lockOrder } from "./lock-order.ts";
import type { RanStatement } from "./statement-log.ts";

const { testPath } = expect.getState();
// Undefined where there is no globalSetup.
const dir = inject("statements") as string | undefined;
if (testPath !== undefined && dir !== undefined) {
  const file = relative(process.cwd(), testPath);
  const seen = new Set<string>();
  const lockedLate = lockOrder();
  const statementRan = (connection: number, text: string) => {
    const late = lockedLate(connection, text);
    if (late !== undefined && !seen.has(late)) {
      seen.add(late);
      appendFileSync(
        join(dir, `${process.pid}`),
        `${JSON.stringify({ text: "", file, late } satisfies RanStatement)}\n`,
      );
    }
    if (seen.has(text)) return;
    seen.add(text);
    appendFileSync(join(dir, `${process.pid}`), `${JSON.stringify({ text, file } satisfies RanStatement)}\n`);
  };
  Object.assign(globalThis, { [Symbol.for("belfry.statement")]: statementRan });
}
