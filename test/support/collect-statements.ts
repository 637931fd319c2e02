// Runs before each test file: writes down every statement that the file's code sends to PostgreSQL.
import { appendFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, inject } from "vitest";
import { lockOrder } from "./lock-order.ts";
import type { RanStatement } from "./statement-log.ts";

/** The file whose tests run now, in a process that runs several. */
interface Collector {
  file: string;
  seen: Set<string>;
}

const place = Symbol.for("belfry.collector");
const global = globalThis as { [name: symbol]: Collector | undefined };

function collect(dir: string, now: Collector) {
  const lockedLate = lockOrder();
  const write = (statement: Omit<RanStatement, "file">) =>
    appendFileSync(join(dir, `${process.pid}`), `${JSON.stringify({ ...statement, file: now.file })}\n`);
  const statementRan = (connection: number, text: string) => {
    const late = lockedLate(connection, text);
    if (late !== undefined && !now.seen.has(late)) {
      now.seen.add(late);
      write({ text: "", late });
    }
    if (now.seen.has(text)) return;
    now.seen.add(text);
    write({ text });
  };
  Object.assign(globalThis, { [Symbol.for("belfry.statement")]: statementRan });
}

const { testPath } = expect.getState();
// Undefined where there is no globalSetup.
const dir = inject("statements") as string | undefined;
if (testPath !== undefined && dir !== undefined) {
  const file = relative(process.cwd(), testPath);
  const running = global[place];
  if (running !== undefined) Object.assign(running, { file, seen: new Set() });
  else {
    global[place] = { file, seen: new Set() };
    collect(dir, global[place]);
  }
}
