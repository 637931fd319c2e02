import { parsePattern } from "../../clause/regex.ts";
import { invalidValue } from "../../wire/status.ts";

/** Whether an alert with these labels is asked for. */
export type Matcher = (labels: Readonly<Record<string, string>>) => boolean;

// Several matchers in one, and braces, are what Alertmanager refuses here, too.
const form =
  /^\s*(?:("(?:[^"\\]|\\.)*")|([^\s{}!=~,\\"'`]+))\s*(=~|!~|!=|=)\s*(?:("(?:[^"\\]|\\.)*")|([^\s{}!=~,\\"'`]*))\s*$/s;

/** One matcher: a name and a value, each in quotes or without. A label that is absent is one that is empty. @throws code 3 */
export function parseMatcher(text: string): Matcher {
  const [, quotedName, bareName, operator, quotedValue, bareValue = ""] = form.exec(text) ?? [];
  if (operator === undefined) throw invalidValue("filter", `bad matcher format: ${text.slice(0, 200)}`);
  const name = quotedName === undefined ? (bareName as string) : unquoted(quotedName);
  const value = quotedValue === undefined ? bareValue : unquoted(quotedValue);
  const of: (labels: Parameters<Matcher>[0]) => string = (labels) =>
    Object.hasOwn(labels, name) ? (labels[name] as string) : "";
  if (operator === "=") return (labels) => of(labels) === value;
  if (operator === "!=") return (labels) => of(labels) !== value;
  const matches = anchored(value);
  return operator === "=~" ? (labels) => matches(of(labels)) : (labels) => !matches(of(labels));
}

/** Whether a text as a whole matches a regular expression of the syntax that clauses have, in linear time. @throws code 3 */
export function anchored(expression: string): (text: string) => boolean {
  const pattern = parsePattern(`^(?:${expression})$`, "filter");
  return (text) => pattern.matches(text);
}

function unquoted(text: string): string {
  return text.slice(1, -1).replaceAll(/\\(.)/gs, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
}
