import { expect, test } from "vitest";
import { estate, type Report } from "../../bench/load/estate.ts";

const CLOSED = 3;

/** The estate's first reports, eight a second. */
function first(count: number, seed: number): Report[] {
  const made: Report[] = [];
  for (const report of estate(seed).reports(8)) {
    made.push(report);
    if (made.length === count) break;
  }
  return made;
}

test("the estate that benches report from is the same for the same seed, in the order of time, with storms and flapping", () => {
  const { entities, names } = estate();
  expect([entities.length, new Set(names).size]).toEqual([2000, 60]);
  const reports = first(60_000, 1);
  expect(reports.slice(0, 1000)).toEqual(first(1000, 1));
  expect(reports.slice(0, 1000)).not.toEqual(first(1000, 2));

  const perSec = new Map<number, number>();
  const open = new Set<string>();
  const opened = new Map<string, number>();
  let beforeMs = 0;
  let inOrder = true;
  for (const { atMs, entity, name, status } of reports) {
    inOrder &&= atMs >= beforeMs;
    beforeMs = atMs;
    perSec.set(Math.floor(atMs / 1000), (perSec.get(Math.floor(atMs / 1000)) ?? 0) + 1);
    const key = `${entity} ${name}`;
    if (!open.has(key)) opened.set(key, (opened.get(key) ?? 0) + 1);
    if (status === CLOSED) open.delete(key);
    else open.add(key);
  }
  expect(inOrder).toBe(true);
  const occurrences = [...opened.values()].reduce((sum, count) => sum + count, 0);
  expect(reports.length / occurrences).toBeGreaterThan(7);
  expect(reports.length / occurrences).toBeLessThan(13);
  expect(Math.max(...opened.values())).toBeGreaterThan(20); // flapping
  expect(Math.max(...perSec.values())).toBeGreaterThan(25); // a storm
});
