import { expect, test } from "vitest";
import { noNotes } from "../../src/metrics/notes.ts";
import { keptKey, kinds, ownerOf, setKey } from "../../src/metrics/series-key.ts";
import { found, type SeriesMemory, seriesMemory, seriesOf } from "../../src/metrics/series-memory.ts";
import { nameSetter } from "../../src/metrics/series-names.ts";

/** A tenant whose entities are named by texts. */
function tenant(memory: SeriesMemory, name: string) {
  const setNames = nameSetter();
  const names = (host: string, labels: Record<string, string> = {}) => ({ metric: "up", dimensions: { host }, labels });
  return {
    find(host: string, labels?: Record<string, string>, nowMs = 0) {
      if (!setNames(names(host, labels)) || !memory.of(name).find(kinds.names, nowMs)) return undefined;
      return seriesOf(found.segment, found.entry);
    },
    learn(host: string, labels?: Record<string, string>, number = 1) {
      setNames(names(host, labels));
      const series = { number, entityId: Buffer.from(host), metric: "up", labels, ...noNotes };
      memory.of(name).learn(keptKey(kinds.names), series, noNotes, 0);
    },
  };
}

test("a series is found by all of its names, and comes back with them", () => {
  const { find, learn } = tenant(seriesMemory(), "a");
  const long = "v".repeat(20_000);
  learn("a", { k: `${long}1`, j: "ü" }, 1);
  learn("a", { k: `${long}2` }, 2);
  learn("a", undefined, 3);
  const labels = { j: "ü", k: `${long}1` };
  expect(find("a", labels)).toEqual({ number: 1, entityId: Buffer.from("a"), metric: "up", labels });
  expect(find("a", { k: `${long}2` })?.number).toBe(2);
  expect(find("a")?.number).toBe(3);
  expect(find("a", { k: `${long}3` })).toBeUndefined();
});

test("names that have not been checked are never those of another series", () => {
  const { find, learn } = tenant(seriesMemory(), "a");
  learn("x\ufffd", { a: "b", c: "d" });
  expect(find("x\ufffd", { a: "b", c: "d" })).toBeDefined();
  expect(find("x\ufffd", { a: "b\0c\0d" })).toBeUndefined();
  expect(find("x\ufffd\0\x002 up\0a\0b\0c\0d", {})).toBeUndefined();
  expect(find("x\ud800", { a: "b", c: "d" })).toBeUndefined();
});

test("a number is trusted for ten minutes", () => {
  const { find, learn } = tenant(seriesMemory(), "a");
  learn("a");
  expect(find("a", {}, 599_999)).toBeDefined();
  expect(find("a", {}, 600_000)).toBeUndefined();
});

test("a tenant with a million random series takes nothing from another, and no more than the bound", () => {
  const bytesMax = 2 ** 22;
  const memory = seriesMemory(bytesMax);
  const [quiet, loud] = [tenant(memory, "quiet"), tenant(memory, "loud")];
  const hosts = Array.from({ length: 1000 }, (_, i) => `host ${i}`);
  for (const host of hosts) quiet.learn(host);
  let most = 0;
  for (let i = 0; i < 1_000_000; i++) {
    loud.learn("random", { id: `${i}` }, i);
    if (i % 1000 === 0) most = Math.max(most, memory.bytes());
  }
  expect(hosts.filter((host) => quiet.find(host) === undefined)).toEqual([]);
  expect(most).toBeLessThanOrEqual(bytesMax);
  expect(loud.find("random", { id: "999999" })?.number).toBe(999_999);
}, 120_000);

test("what is used stays, and what was learnt first and not used since is forgotten first", () => {
  const memory = seriesMemory(2 ** 21);
  const { find, learn } = tenant(memory, "a");
  for (let i = 0; i < 500; i++) learn(`${i}`);
  for (let i = 0; i < 50_000; i++) {
    learn("random", { id: `${i}` });
    for (let host = 0; i % 100 === 0 && host < 250; host++) find(`${host}`);
  }
  const known = Array.from({ length: 500 }, (_, i) => find(`${i}`) !== undefined);
  expect(known.slice(0, 250)).not.toContain(false);
  expect(known.slice(250)).not.toContain(true);
  expect(find("random", { id: "49000" })).toBeDefined();
});

test("what is kept counts with its bytes: of long keys there is room for fewer", () => {
  const room = (text: string) => {
    const memory = seriesMemory(2 ** 22);
    for (let i = 0; i < 20_000; i++) tenant(memory, "a").learn(`${i}`, { k: text });
    return memory.size();
  };
  expect(room("v".repeat(3000))).toBeLessThan(room("v") / 8);
});

test("tenants that send nothing for ten minutes give their room back when another begins", () => {
  const memory = seriesMemory();
  tenant(memory, "first").learn("a");
  const { now } = performance;
  try {
    performance.now = () => now.call(performance) + 600_000;
    tenant(memory, "second").learn("a");
  } finally {
    performance.now = now;
  }
  expect(memory.size()).toBe(1);
});

test("numbers of symbols and the like stay, whoever else has the same bytes, until they are forgotten", () => {
  const memory = seriesMemory();
  const idOf = (name: string, text: string, owner = ownerOf(kinds.symbol)) => {
    setKey(Buffer.from(text));
    return memory.of(name).idOf(owner);
  };
  const ids = ["a", "b", "ab", ""].map((text) => idOf("one", text));
  expect(new Set(ids).size).toBe(4);
  expect(["a", "b", "ab", ""].map((text) => idOf("one", text))).toEqual(ids);
  expect(ids).not.toContain(idOf("one", "a", ownerOf(kinds.scope, 5)));
  expect(memory.size()).toBe(0);
});

test("of one hash a few are kept: more do not make it slow", () => {
  const memory = seriesMemory();
  const idOf = (text: string) => {
    setKey(Buffer.from(text), 0, text.length, 1);
    return memory.of("one").idOf(ownerOf(kinds.symbol));
  };
  const texts = Array.from({ length: 1000 }, (_, i) => `${i}`);
  const first = texts.map(idOf);
  expect(texts.filter((text, i) => idOf(text) === first[i])).toHaveLength(8);
});

test("a hundred thousand owners of the same bytes do not look at each other's", () => {
  const known = seriesMemory().of("one");
  setKey(Buffer.from("the same"));
  const owners = Array.from({ length: 100_000 }, (_, i) => ownerOf(kinds.point, i));
  const ids = owners.map((owner) => known.idOf(owner));
  // Each would look at all others: for a minute.
  expect(owners.map((owner) => known.idOf(owner))).toEqual(ids);
});
