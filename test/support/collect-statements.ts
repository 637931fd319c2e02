// Runs before each test file: writes down every statement that the file's code sends to PostgreSQL.
import { appendFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, inject } from "vitest";
import { lockOrder } from "./lock-order.ts";
import { sending } from "./sent-statements.ts";
import { type RanStatement, withoutValues } from "./statement-log.ts";

/** The file whose tests run now, in a process that runs several. */
interface Collector {
  file: string;
  /** How often each text was written down. */
  seen: Map<string, number>;
}

/** Runs of a statement in a file whose parameters are written down, and the characters that these may have. */
const runsMax = 3;
const charactersMax = 10_000;

/** Parameters as PostgreSQL reads them; undefined where one has a form that the driver alone writes. */
function parametersText(parameters: readonly unknown[]): (string | null)[] | undefined {
  const texts: (string | null)[] = [];
  let characters = 0;
  for (const value of parameters) {
    const inner: unknown = typeof value === "object" && value !== null && "raw" in value ? value.raw : value;
    const text = inner instanceof Uint8Array ? `\\x${Buffer.from(inner).toString("hex")}` : inner;
    if (text === null || text === undefined) texts.push(null);
    else if (typeof text === "object") return undefined;
    else texts.push(String(text));
    characters += texts.at(-1)?.length ?? 0;
  }
  return characters > charactersMax ? undefined : texts;
}

/** What the driver calls its option `debug` on. */
interface Client {
  connection?: { application_name?: string };
}

const place = Symbol.for("belfry.collector");
const global = globalThis as { [name: symbol]: Collector | undefined };

function collect(dir: string, now: Collector) {
  const lockedLate = lockOrder();
  /** Connections whose transaction plans without values. */
  const planless = new Set<number>();
  const write = (statement: Omit<RanStatement, "file">) =>
    appendFileSync(join(dir, `${process.pid}`), `${JSON.stringify({ ...statement, file: now.file })}\n`);
  function statementRan(
    this: Client | undefined,
    connection: number,
    text: string,
    values: unknown[] = [],
    types: number[] = [],
  ) {
    const late = lockedLate(connection, text);
    if (late !== undefined && !now.seen.has(late)) {
      now.seen.set(late, 1);
      write({ text: "", late });
    }
    if (/^(?:begin|commit|rollback)$/.test(text)) planless.delete(connection);
    else if (text === "set local plan_cache_mode = force_generic_plan") planless.add(connection);
    const name = `${this?.connection?.application_name ?? ""}${planless.has(connection) ? withoutValues : ""}`;
    sending.listener?.(() => ({
      text,
      parameters: parametersText(values) ?? [],
      types,
      connections: [name],
      file: now.file,
    }));
    const runs = now.seen.get(text) ?? 0;
    if (runs >= runsMax) return;
    const parameters = parametersText(values);
    if (parameters === undefined && runs > 0) return;
    if (values.length === 0) now.seen.set(text, runsMax);
    else now.seen.set(text, runs + 1);
    write({ text, ...(parameters && { connections: [name], parameters, types }) });
  }
  Object.assign(globalThis, { [Symbol.for("belfry.statement")]: statementRan });
}

const { testPath } = expect.getState();
// Undefined where there is no globalSetup.
const dir = inject("statements") as string | undefined;
if (testPath !== undefined && dir !== undefined) {
  const file = relative(process.cwd(), testPath);
  const running = global[place];
  if (running !== undefined) Object.assign(running, { file, seen: new Map() });
  else {
    global[place] = { file, seen: new Map() };
    collect(dir, global[place]);
  }
}
