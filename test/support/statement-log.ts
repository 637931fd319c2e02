import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of what the test files of this run sent to PostgreSQL: a JSON object a line. */
    statements: string;
  }
}

/** One statement, and the test file that sent it first. */
export interface RanStatement {
  text: string;
  file: string;
  /** What it locked after what comes later in the order of locks; its text is empty then. */
  late?: string;
  /** Names of the connections that it ran on, which say for what kind of work, each with `withoutValues` where it was planned so. */
  connections?: string[];
  /** Parameters of one run, as PostgreSQL reads them, and their types where the driver names them, else 0. */
  parameters?: (string | null)[];
  types?: number[];
}

/** Follows the name of a connection whose transaction has its statements planned without values (src/db/transaction.ts). */
export const withoutValues = ", without values";

/** Vitest's globalSetup: where this run writes down its statements. A directory that STATEMENTS_DIR names is kept, with what is in it. */
export function setup(project: TestProject) {
  const kept = process.env.STATEMENTS_DIR;
  const dir = kept ?? mkdtempSync(join(tmpdir(), "belfry-statements-"));
  mkdirSync(dir, { recursive: true });
  project.provide("statements", dir);
  if (kept !== undefined) return;
  return () => rmSync(dir, { recursive: true, force: true });
}

/** What the test files have sent so far, each text once, with the longest parameters that were written down. */
export function readStatements(dir: string): RanStatement[] {
  if (!existsSync(dir)) return [];
  const lines = readdirSync(dir).flatMap((name) => readFileSync(join(dir, name), "utf8").trim().split("\n"));
  const statements = new Map<string, RanStatement & { length: number }>();
  for (const line of lines) {
    const statement: RanStatement = JSON.parse(line);
    const key = statement.late ?? statement.text;
    const length = statement.parameters === undefined ? 0 : line.length;
    const known = statements.get(key);
    const connections = [...new Set([...(known?.connections ?? []), ...(statement.connections ?? [])])];
    if (known === undefined) statements.set(key, { ...statement, length });
    else if (known.length < length) statements.set(key, { ...statement, file: known.file, connections, length });
    else known.connections = connections;
  }
  return [...statements.values()];
}
