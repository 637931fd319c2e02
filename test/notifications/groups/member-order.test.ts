import fc from "fast-check";
import { expect, test } from "vitest";
import { paced } from "../../../src/event-loop.ts";
import { groupSnapshot, type Listed } from "../../../src/notifications/groups/group-snapshot.ts";
import { cases } from "../../support/cases.ts";
import { heldMs, turnMsMax } from "../../support/loop-turns.ts";

type Labels = Readonly<Record<string, string>>;

const group = { labels: {}, beyond: false };
/** A series that a rule matches: of members the ones with the fewest columns. */
const member = (labels: Labels, i: number, resolved = false): Listed => ({
  resolved,
  standing: {
    match: { subject: { key: Buffer.from([i >> 8, i]), entityId: Buffer.alloc(16) }, triggerNames: [], lastMs: 0 },
    labels,
    startMs: 0,
  } as never,
});
const placeIn = (all: readonly Listed[]) => new Map(all.map((each, i) => [each, i]));

/** Alertmanager's `AlertSlice.Less`: `job`, `instance`, then `LabelSet.Before`; texts by their bytes. */
function order({ standing: { labels: a } }: Listed, { standing: { labels: b } }: Listed): number {
  const bytes = (one = "", other = "") => Buffer.compare(Buffer.from(one), Buffer.from(other));
  for (const name of ["job", "instance"]) {
    if (a[name] === b[name]) continue;
    if (!a[name] || !b[name]) return a[name] ? -1 : 1;
    return bytes(a[name], b[name]);
  }
  const [left, right] = [Object.keys(a), Object.keys(b)];
  if (left.length !== right.length) return left.length - right.length;
  for (const name of [...new Set([...left, ...right])].sort()) {
    if (!Object.hasOwn(a, name)) return -1;
    if (!Object.hasOwn(b, name)) return 1;
    const compared = bytes(a[name], b[name]);
    if (compared !== 0) return compared;
  }
  return 0;
}

test("the members that a message shows are the first of Alertmanager's order, firing ones before resolved ones; the rest keep theirs", async () => {
  const labels = fc.dictionary(
    fc.constantFrom("job", "instance", "a", "ab", "b", "é", "zz"),
    fc.constantFrom("x", "xy", "y", "ü", "\u{1f600}", "\ufb00", "0"),
    { noNullPrototype: true },
  );
  const all = fc.array(fc.tuple(labels, fc.boolean()), { minLength: 1, maxLength: 160, size: "max" });
  await fc.assert(
    fc.asyncProperty(all, async (drawn) => {
      const listed = drawn.map(([own, resolved], i) => member(own, i, resolved));
      const { told, listed: members } = await groupSnapshot(group, listed, () => undefined);
      const sorted = listed.toSorted(order);
      const wanted =
        listed.length <= 100 ? sorted : [...sorted.filter((m) => !m.resolved), ...sorted.filter((m) => m.resolved)];
      const places = placeIn(listed);
      expect(members.slice(0, 100).map((m) => places.get(m))).toEqual(wanted.slice(0, 100).map((m) => places.get(m)));
      expect(told.alerts.map((alert) => alert.labels)).toEqual(wanted.slice(0, 100).map((m) => m.standing.labels));
      const rest = members.slice(100).map((m) => places.get(m) as number);
      expect(rest).toEqual(rest.toSorted((a, b) => a - b));
      expect(members).toHaveLength(listed.length);
    }),
    { numRuns: cases(100) },
  );
});

test("members of many labels are chosen in slices, the labels of each are sorted once", async () => {
  const shared = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`label_${i}`, `value ${i}`]));
  let reads = 0;
  const counted = (labels: Labels): Labels =>
    new Proxy(labels, {
      ownKeys(own) {
        reads += 1;
        return Reflect.ownKeys(own);
      },
    });
  const count = 200;
  const listed = Array.from({ length: count }, (_, i) =>
    member(counted({ ...shared, label_999: `value ${(i * 7919) % count}` }), i),
  );
  let pieces = 0;
  const pace = paced(undefined, "tenant");
  const order = () => {
    [pieces, reads] = [0, 0];
    return groupSnapshot(group, listed, () => {
      pieces += 1;
      return pace();
    });
  };
  const { turn } = await heldMs(order);
  expect(turn).toBeLessThan(turnMsMax);
  const { told } = await order();
  // The key of each, what each has in common, each that is shown.
  expect(pieces).toBeGreaterThanOrEqual(2 * count);
  expect(reads).toBeLessThanOrEqual(2 * count);
  expect(Object.keys(told.commonLabels)).toHaveLength(999);
  // A megabyte of them is shown.
  const values = told.alerts.map(({ labels }) => Number(labels.label_999?.slice("value ".length)));
  expect(values.length).toBeGreaterThan(10);
  const texts = Array.from({ length: count }, (_, i) => `value ${i}`).sort();
  expect(values.map((value) => `value ${value}`)).toEqual(texts.slice(0, values.length));
});
