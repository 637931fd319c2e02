import { globSync, readFileSync } from "node:fs";
import type { RanStatement } from "./statement-log.ts";

const root = new URL("../..", import.meta.url).pathname;

/** A text with single spaces. */
export const plain = (text: string) => text.replaceAll(/\s+/g, " ").trim();

const allOf = (pattern: string) =>
  plain(
    globSync(pattern, { cwd: root })
      .map((path) => readFileSync(root + path, "utf8"))
      .join("\n"),
  );

/** What tests put together of parts: it is in none of them word for word. */
const composed = [/\bpg_terminate_backend\(/, /^select \(to_jsonb\(t\) - 'last_used_ms'\)::text as row from/];

/** Those of these statements that the server's code has sent, other than its migrations. */
export function ourStatements(ran: readonly RanStatement[]): RanStatement[] {
  const source = allOf("src/**/*.ts");
  const tests = allOf("test/**/*.ts");
  const migrations = allOf("migrations/*.sql");
  // Tests look at tables too, and their schemas are their own affair: what stands word for word in a test, or comes from none of our statements.
  function ofTests(text: string): boolean {
    if (composed.some((each) => each.test(plain(text)))) return true;
    const [begin = "", ...rest] = text.split(/\$\d+/).map(plain);
    if (!tests.includes(begin)) return false;
    return !source.includes(begin) || !rest.every((part) => source.includes(part) || !tests.includes(part));
  }
  return ran.filter(({ text }) => plain(text) !== "" && !ofTests(text) && !migrations.includes(plain(text)));
}
