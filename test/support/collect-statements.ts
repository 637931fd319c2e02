// Runs before each test file: writes down every statement that the file's code sends to PostgreSQL.
import { appendFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, inject } from "vitest";
import type { RanStatement } from "./statement-log.ts";

const { testPath } = expect.getState();
// Undefined where there is no globalSetup.
const dir = inject("statements") as string | undefined;
if (testPath !== undefined && dir !== undefined) {
  const file = relative(process.cwd(), testPath);
  const seen = new Set<string>();
  const statementRan = (_connection: number, text: string) => {
    if (seen.has(text)) return;
    seen.add(text);
    appendFileSync(join(dir, `${process.pid}`), `${JSON.stringify({ text, file } satisfies RanStatement)}\n`);
  };
  Object.assign(globalThis, { [Symbol.for("belfry.statement")]: statementRan });
}
