import { expect, test } from "vitest";
import { knownBytes } from "../../src/integrations/known-bytes.ts";

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));
const find = <T>(map: ReturnType<typeof knownBytes<T>>, owner: string, text: string, hash = 1) =>
  map.find(owner, hash, bytesOf(`-${text}-`), 1, text.length + 1);

test("bytes are found for their owner alone, also among others of the same hash", () => {
  const map = knownBytes<string>(1e6);
  for (const text of ["a", "b", "ab"]) map.set("one", 1, bytesOf(text), text);
  expect(["a", "b", "ab", "c"].map((text) => find(map, "one", text))).toEqual(["a", "b", "ab", undefined]);
  expect(find(map, "two", "a")).toBeUndefined();
});

test("what is used stays; what is not is forgotten when others have taken its room", () => {
  const map = knownBytes<number>(4000);
  map.set("one", 1, bytesOf("a"), 1);
  map.set("one", 2, bytesOf("b"), 2);
  for (let i = 0; i < 100; i++) {
    map.set("one", 3 + i, bytesOf("c"), 3);
    find(map, "one", "a");
  }
  expect([find(map, "one", "a"), find(map, "one", "b", 2)]).toEqual([1, undefined]);
});

test("of one hash a few are kept: more do not make it slow", () => {
  const map = knownBytes<number>(1e6);
  for (let i = 0; i < 1000; i++) map.set("one", 1, bytesOf(`${i}`), i);
  expect(
    Array.from({ length: 1000 }, (_, i) => find(map, "one", `${i}`)).filter((each) => each !== undefined),
  ).toHaveLength(8);
});
