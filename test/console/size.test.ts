import { brotliCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { buildConsole, pageName } from "../../src/console/build.ts";

const root = new URL("../..", import.meta.url).pathname;

test("the console is at most 300 kB compressed by brotli, and 113 of it come before the list of events", async () => {
  const files = await buildConsole(root);
  const kB = (names: (name: string) => boolean) =>
    files.filter(({ name }) => names(name)).reduce((sum, { bytes }) => sum + brotliCompressSync(bytes).byteLength, 0) /
    1000;
  const text = new Map(files.map(({ name, bytes }) => [name, bytes.toString()]));
  const reached = new Set<string>();
  const follow = (name: string) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const [, next = ""] of (text.get(name) ?? "").matchAll(/(?:from|import)\s*["']\.\/([^"']+)["']/g))
      follow(next);
  };
  follow(files.find(({ name }) => /^main-.*\.js$/.test(name))?.name ?? "");
  const events = files.find(({ name, bytes }) => /^screen-.*\.js$/.test(name) && bytes.includes("Nothing is open."));
  follow(events?.name ?? "");
  expect(events).toBeDefined();
  const whole = kB(() => true);
  const first = kB((name) => reached.has(name) || name === pageName || name.endsWith(".css"));
  console.log(`the console: ${whole.toFixed(1)} kB, before the list of events ${first.toFixed(1)} kB`);
  expect(whole).toBeLessThan(300);
  expect(first).toBeLessThan(113);
});
