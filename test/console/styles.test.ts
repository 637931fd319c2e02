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

/** A colour's place in OKLab, where equal distances look alike, and its luminance. */
function seen(hex: string) {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  const lab = [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
  return { lab, luminance: 0.2126 * red + 0.7152 * green + 0.0722 * blue };
}

test("the ten colours of series are far apart and stand out from the paper, light and dark", () => {
  const tokens = readFileSync(join(root, "console/ui/tokens.css"), "utf8");
  const pairs = [...tokens.matchAll(/--(series-\d|paper): light-dark\((#\w{6}), (#\w{6})\)/g)];
  for (const side of [2, 3]) {
    const colours = pairs.filter(([, name]) => name !== "paper").map((pair) => seen(pair[side] ?? ""));
    const paper = seen(pairs.find(([, name]) => name === "paper")?.[side] ?? "").luminance;
    expect(colours).toHaveLength(10);
    for (const [at, { lab, luminance }] of colours.entries()) {
      const [dark = 0, light = 0] = [luminance, paper].sort((a, b) => a - b);
      expect((light + 0.05) / (dark + 0.05), `contrast of series-${at}`).toBeGreaterThan(3);
      for (const other of colours.slice(at + 1)) {
        const apart = Math.hypot(...lab.map((part, axis) => part - (other.lab[axis] ?? 0)));
        expect(apart, `series-${at} beside another`).toBeGreaterThan(0.09);
      }
    }
  }
});
