import { expect, test } from "vitest";
import { fairQueue } from "../src/fair-queue.ts";

function queueOf(names: readonly string[]) {
  const queue = fairQueue<string>();
  for (const name of names) queue.add([name[0], name[1]], name);
  return queue;
}
const all = (queue: ReturnType<typeof queueOf>) => Array.from({ length: queue.size }, () => queue.next());

test("keys take turns, within a first key the second ones, within both it goes by arrival", () => {
  const queue = queueOf(["a1x", "a1y", "a2x", "b1x", "b1y", "c1x"]);
  expect(all(queue)).toEqual(["a1x", "b1x", "c1x", "a2x", "b1y", "a1y"]);
  expect(queue.size).toBe(0);
  expect(queue.next()).toBeUndefined();
});

test("who was served goes behind those that came since", () => {
  const queue = queueOf(["a1x", "a1y"]);
  expect(queue.next()).toBe("a1x");
  queue.add(["b", "1"], "b1x");
  expect(all(queue)).toEqual(["a1y", "b1x"]);
  queue.add(["a", "1"], "a1z");
  queue.add(["b", "1"], "b1y");
  expect(queue.next()).toBe("a1z");
  queue.add(["a", "1"], "a1!");
  expect(all(queue)).toEqual(["b1y", "a1!"]);
});

test("who may not be served keeps the place, and keeps only the own line waiting", () => {
  const queue = queueOf(["a1x", "a1y", "a2x", "b1x"]);
  const may = (name: string) => name !== "a1x";
  expect([queue.next(may), queue.next(may), queue.next(may)]).toEqual(["a2x", "b1x", undefined]);
  expect(all(queue)).toEqual(["a1x", "a1y"]);
});

test("who leaves is not served, and may leave twice", () => {
  const queue = queueOf(["a1x", "a1y", "b1x"]);
  for (let i = 0; i < 2; i++) queue.remove(["a", "1"], "a1x");
  queue.remove(["d", "1"], "d1x");
  expect(queue.size).toBe(2);
  expect(all(queue)).toEqual(["a1y", "b1x"]);
});
