import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { containsText, textAutomaton } from "../../src/clause/text-automaton.ts";
import { cases, seed } from "../support/cases.ts";

// Few letters, so that needles overlap and hold each other; units beyond Latin-1, and halves of pairs.
const text = (maxLength: number) =>
  fc.array(fc.constantFrom("a", "b", "ab", "é", "ж", "😀", "\ud83d"), { maxLength }).map((parts) => parts.join(""));

describe(`for generated texts (seed ${seed})`, () => {
  test("it finds exactly the needles that the text includes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(text(8), { maxLength: 30 }), fc.array(text(40)), async (needles, texts) => {
        const automaton = await textAutomaton(needles);
        const wanted = needles.filter((needle) => needle !== "");
        expect(wanted.filter((needle) => !automaton.has(needle))).toEqual([]);
        for (const each of texts) {
          expect([...automaton.search(each)].sort()).toEqual(wanted.filter((needle) => each.includes(needle)).sort());
        }
      }),
      { numRuns: cases(300), seed },
    );
  });

  test("needles that have no room are left out, and it says which", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(text(8), { maxLength: 30 }),
        text(40),
        fc.integer({ min: 0, max: 40 }),
        async (needles, each, nodesMax) => {
          const automaton = await textAutomaton(needles, { nodesMax });
          expect(automaton.nodes).toBeLessThanOrEqual(Math.max(1, nodesMax));
          const held = needles.filter((needle) => automaton.has(needle));
          expect(held).toHaveLength(automaton.needles);
          expect([...automaton.search(each)].sort()).toEqual(held.filter((needle) => each.includes(needle)).sort());
        },
      ),
      { numRuns: cases(300), seed },
    );
  });

  test("one long needle is found as includes finds it", () => {
    const long = fc
      .tuple(fc.nat(600), fc.nat(600), fc.boolean())
      .map(([a, b, x]) => `${"a".repeat(a)}${x ? "b" : ""}${"a".repeat(b)}`);
    const many = fc.array(long, { minLength: 8, maxLength: 12 }).map((parts) => parts.join("c"));
    fc.assert(
      fc.property(many, long, (each, needle) => containsText(each, needle) === each.includes(needle)),
      { numRuns: cases(500), seed },
    );
  });
});

test("a text in which every needle ends at every place takes a time that grows with the text alone", async () => {
  const needles = Array.from({ length: 2000 }, (_, i) => "a".repeat(i + 1));
  const automaton = await textAutomaton(needles);
  const cpu = (size: number) => {
    const { user } = process.cpuUsage();
    expect(automaton.search("a".repeat(size)).size).toBe(2000);
    return process.cpuUsage().user - user;
  };
  cpu(100_000);
  // All at all places would be 2,000 million steps.
  expect(cpu(1_000_000)).toBeLessThan(2_000_000);
});

test("needles whose places would share slots of a hash that is known beforehand take no longer than others", async () => {
  const [count, length] = [20, 1000];
  const mask = 2 ** Math.ceil(Math.log2(2 * (1 + count * length) + 2)) - 1;
  // By a hash with fixed factors: each place wants a slot among those that are taken.
  const slotOf = (node: number, unit: number) =>
    ((Math.imul(node, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b)) >>> 7) & mask;
  let node = 0;
  const colliding = Array.from({ length: count }, (_, i) => {
    let parent = 0;
    let text = "";
    for (let at = 0; at < length; at++) {
      let [best, bestSlot] = [0x4e00 + i, Infinity];
      for (let unit = 0x4e00; at > 0 && unit < 0x5e00; unit++) {
        const slot = slotOf(parent, unit);
        if (slot < bestSlot) [best, bestSlot] = [unit, slot];
      }
      text += String.fromCharCode(best);
      parent = ++node;
    }
    return text;
  });
  const usual = colliding.map((_, i) => `${String.fromCharCode(0x4e00 + i)}${"a".repeat(length - 1)}`);
  async function cpu(needles: readonly string[]) {
    const { user } = process.cpuUsage();
    const automaton = await textAutomaton(needles);
    expect(automaton.search(needles.join("")).size).toBe(count);
    return process.cpuUsage().user - user;
  }
  await cpu(usual);
  expect(await cpu(colliding)).toBeLessThan(10 * Math.max(10_000, await cpu(usual)));
});

test("building it lets others take their turns", async () => {
  let turns = 0;
  const pace = () => {
    turns += 1;
    return undefined;
  };
  await textAutomaton(
    Array.from({ length: 5000 }, (_, i) => `needle ${i * 7919}`),
    { pace },
  );
  expect(turns).toBeGreaterThan(20);
  turns = 0;
  await textAutomaton(
    Array.from({ length: 100 }, (_, i) => `${"a".repeat(4000)}${i}`),
    { pace },
  );
  // Few places, and all of them are passed for each needle.
  expect(turns).toBeGreaterThan(50);
});
