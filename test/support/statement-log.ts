import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
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
}

/** Vitest's globalSetup: where this run writes down its statements. */
export function setup(project: TestProject) {
  const dir = mkdtempSync(join(tmpdir(), "belfry-statements-"));
  project.provide("statements", dir);
  return () => rmSync(dir, { recursive: true, force: true });
}

/** What the test files have sent so far, each text once. */
export function readStatements(dir: string): RanStatement[] {
  if (!existsSync(dir)) return [];
  const lines = readdirSync(dir).flatMap((name) => readFileSync(join(dir, name), "utf8").trim().split("\n"));
  const statements = new Map<string, RanStatement>();
  for (const line of lines) {
    const statement: RanStatement = JSON.parse(line);
    const key = statement.late ?? statement.text;
    if (!statements.has(key)) statements.set(key, statement);
  }
  return [...statements.values()];
}
