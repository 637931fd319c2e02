import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of what the test files of this run sent to PostgreSQL: a JSON object a line. */
    statements: string;
    /** Whether the directory holds what all files of `npm test` sent. */
    statementsWhole: boolean;
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

/** Where `npm test` leaves its statements for the gate, which adds those of its system tests and judges them all. */
const kept = join(import.meta.dirname, "../../node_modules/.cache/statements");
/** A file beside it: all of its files have run. */
const whole = `${kept}.whole`;

/** Vitest's globalSetup: where this run writes down its statements. With STATEMENTS=begin it begins what is kept, with STATEMENTS=add it adds to that. */
export function setup(project: TestProject) {
  const mode = process.env.STATEMENTS;
  const dir = mode === undefined ? mkdtempSync(join(tmpdir(), "belfry-statements-")) : kept;
  if (mode === "begin") for (const path of [kept, whole]) rmSync(path, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  project.provide("statements", dir);
  project.provide("statementsWhole", mode !== undefined && existsSync(whole));
  return async () => {
    if (mode === undefined) rmSync(dir, { recursive: true, force: true });
    if (mode === "begin" && (await ranWhole(project))) writeFileSync(whole, "");
  };
}

/** Whether no file was left out by a filter. */
const ranWhole = async ({ vitest }: TestProject) =>
  vitest.state.getFiles().length >= (await vitest.globTestSpecifications()).length;

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
