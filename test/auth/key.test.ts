import { expect, test } from "vitest";
import { keyDigest, keyPattern, newApiKey, parseKey } from "../../src/auth/key.ts";

test("a new key has the published form and leads to its prefix", () => {
  for (let i = 0; i < 1000; i += 1) {
    const { text, prefix } = newApiKey();
    expect(text).toMatch(keyPattern);
    expect(parseKey(text)).toBe(prefix);
  }
});

test("two keys have neither prefix nor secret in common", () => {
  const keys = Array.from({ length: 1000 }, newApiKey);
  expect(new Set(keys.map(({ prefix }) => prefix)).size).toBe(1000);
  expect(new Set(keys.map(({ text }) => text.split("_")[2])).size).toBe(1000);
});

test("one wrong character anywhere is found by the checksum", () => {
  const { text } = newApiKey();
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === "x" ? "y" : "x";
    expect(parseKey(text.slice(0, at) + other + text.slice(at + 1)), `at ${at}`).toBeUndefined();
  }
});

test("two neighbours exchanged are found by the checksum", () => {
  const { text } = newApiKey();
  for (let at = 0; at + 1 < text.length; at += 1) {
    if (text[at] === text[at + 1]) continue;
    const swapped = text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2);
    expect(parseKey(swapped), `at ${at}`).toBeUndefined();
  }
});

test.each([
  "",
  "bf",
  "bf__",
  "Bearer x",
  `${newApiKey().text} `,
  ` ${newApiKey().text}`,
  `${newApiKey().text}, ${newApiKey().text}`,
])("%j is no key", (text) => {
  expect(parseKey(text)).toBeUndefined();
});

test("a digest has 32 bytes and differs for each key", () => {
  const { text } = newApiKey();
  expect(keyDigest(text)).toHaveLength(32);
  expect(keyDigest(text).equals(keyDigest(newApiKey().text))).toBe(false);
});
