import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** The classes that a style sheet has, by their names. */
function classesOf(path: string): Set<string> {
  const rules = readFileSync(path, "utf8").replace(/\/\*.*?\*\/|\{[^{}]*\}/gs, " {} ");
  return new Set([...rules.matchAll(/\.([a-zA-Z][\w-]*)/g)].map(([, name = ""]) => name));
}

test("every class that the console names is in its style sheet, and none is left over", () => {
  const named = new Map(globSync(join(root, "console/**/*.module.css")).map((path) => [path, new Set<string>()]));
  const unknown: string[] = [];
  for (const path of globSync(join(root, "console/**/*.tsx"))) {
    const text = readFileSync(path, "utf8");
    const code = text.replace(/^import .*$/gm, "");
    expect(text, `${path} names a class by a text`).not.toMatch(/\bclass="/);
    for (const [, alias = "", from = ""] of text.matchAll(/^import (\w+) from "([^"]*\.module\.css)";$/gm)) {
      const sheet = join(dirname(path), from);
      const classes = classesOf(sheet);
      for (const [, name = ""] of code.matchAll(new RegExp(`(?<![.\\w])${alias}\\.(\\w+)`, "g"))) {
        named.get(sheet)?.add(name);
        if (!classes.has(name)) unknown.push(`${path}: ${alias}.${name}`);
      }
      // By a value, as in `frameLook[state]`: any of them may be meant.
      if (text.includes(`${alias}[`)) for (const name of classes) named.get(sheet)?.add(name);
    }
  }
  const leftOver = [...named].flatMap(([path, names]) =>
    [...classesOf(path)].filter((name) => !names.has(name)).map((name) => `${path}: .${name}`),
  );
  expect({ unknown, leftOver }).toEqual({ unknown: [], leftOver: [] });
});
