import { randomInt } from "node:crypto";

/** Finds which of many needles occur in a text, in one pass over it. */
export interface TextAutomaton {
  /** How many places of needles it holds. */
  readonly nodes: number;
  /** How many needles it looks for. */
  readonly needles: number;
  /** Whether it looks for this needle. */
  has(needle: string): boolean;
  /** Those of its needles that the text contains. Takes a time that grows with the text and with what is found, not with the needles. */
  search(text: string): ReadonlySet<string>;
}

/** Called now and then during long work: what to wait for before it goes on. */
type Pace = () => Promise<void> | undefined;

/** A pace is asked for after this many steps, or this many units of needles. */
const stepsMax = 500;
const unitsMax = 5000;
const latinMax = 256;

/** A tree of needles: each node stands for a beginning of some, by its UTF-16 units; 0 for the empty one. */
interface Trie {
  count: number;
  parent: Int32Array;
  unit: Uint16Array;
  /** The needle that ends at a node, as its place in the list and 1; 0: none. */
  ends: Int32Array;
  /** Children by parent and unit, in open addressing. */
  slots: Int32Array;
  /** Leaves as many bits of a hash as number the slots. */
  shift: number;
}

/** Random and odd, so that no one can write needles whose nodes all want the same slots. */
const [nodeFactor, unitFactor] = [randomInt(2 ** 31) * 2 + 1, randomInt(2 ** 31) * 2 + 1];

const slotOf = ({ shift }: Trie, node: number, unit: number) =>
  (Math.imul(node, nodeFactor) + Math.imul(unit, unitFactor)) >>> shift;

/** The child of a node by a unit; 0: there is none. */
function childOf(trie: Trie, node: number, unit: number): number {
  const { slots, parent, unit: units } = trie;
  for (let slot = slotOf(trie, node, unit); ; slot = (slot + 1) & (slots.length - 1)) {
    const child = slots[slot] as number;
    if (child === 0 || (parent[child] === node && units[child] === unit)) return child;
  }
}

function addChild(trie: Trie, node: number, unit: number): number {
  const { slots } = trie;
  const child = trie.count++;
  trie.parent[child] = node;
  trie.unit[child] = unit;
  let slot = slotOf(trie, node, unit);
  while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
  slots[slot] = child;
  return child;
}

async function trieOf(needles: readonly string[], nodesMax: number, pace: Pace): Promise<Trie> {
  const size = 1 + needles.reduce((sum, { length }) => sum + length, 0);
  const capacity = Math.max(1, Math.min(size, nodesMax));
  const slotBits = Math.ceil(Math.log2(2 * capacity + 2));
  const trie: Trie = {
    count: 1,
    parent: new Int32Array(capacity),
    unit: new Uint16Array(capacity),
    ends: new Int32Array(capacity),
    slots: new Int32Array(2 ** slotBits),
    shift: 32 - slotBits,
  };
  let unitsRead = 0;
  for (const [i, needle] of needles.entries()) {
    unitsRead += needle.length;
    if (unitsRead >= unitsMax) {
      unitsRead = 0;
      await pace();
    }
    // One that has no room, even if some of it is there, is left out.
    if (needle === "" || trie.count + needle.length > nodesMax) continue;
    let node = 0;
    for (let at = 0; at < needle.length; at++) {
      const unit = needle.charCodeAt(at);
      node = childOf(trie, node, unit) || addChild(trie, node, unit);
    }
    trie.ends[node] = i + 1;
  }
  return trie;
}

/** The nodes, those of fewer units first. */
async function byDepth({ count, parent }: Trie, pace: Pace): Promise<Int32Array> {
  const depth = new Int32Array(count);
  const perDepth: number[] = [];
  for (let node = 1; node < count; node++) {
    if (node % (stepsMax * 20) === 0) await pace();
    // A parent is older than its children.
    const own = (depth[parent[node] as number] as number) + 1;
    depth[node] = own;
    perDepth[own] = (perDepth[own] ?? 0) + 1;
  }
  const from: number[] = [];
  let sum = 0;
  for (let own = 1; own < perDepth.length; own++) {
    from[own] = sum;
    sum += perDepth[own] as number;
  }
  const order = new Int32Array(count - 1);
  for (let node = 1; node < count; node++) {
    const own = depth[node] as number;
    order[from[own] as number] = node;
    from[own] = (from[own] as number) + 1;
  }
  return order;
}

/**
 * Builds the automaton of Aho and Corasick over needles that differ from each other; an empty one, and what would make it larger
 * than `nodesMax`, is left out (`has`). Texts are compared by UTF-16 units, as `includes` does.
 */
export async function textAutomaton(
  needles: readonly string[],
  { pace = () => undefined, nodesMax = 1 << 21 }: { pace?: Pace; nodesMax?: number } = {},
): Promise<TextAutomaton> {
  const trie = await trieOf(needles, nodesMax, pace);
  const { count, parent, unit: units, ends } = trie;
  /** The longest end of a node's text that is a node itself. */
  const fail = new Int32Array(count);
  /** Of these ends, the longest at which a needle ends; 0: none. */
  const shorter = new Int32Array(count);
  const follow = (state: number, unit: number) => {
    for (let at = state; ; at = fail[at] as number) {
      const next = childOf(trie, at, unit);
      if (next !== 0 || at === 0) return next;
    }
  };
  let steps = 0;
  for (const node of await byDepth(trie, pace)) {
    if (++steps % stepsMax === 0) await pace();
    const above = parent[node] as number;
    if (above !== 0) fail[node] = follow(fail[above] as number, units[node] as number);
    const end = fail[node] as number;
    shorter[node] = ends[end] === 0 ? (shorter[end] as number) : end;
  }
  const first = new Int32Array(latinMax);
  for (let unit = 0; unit < latinMax; unit++) first[unit] = childOf(trie, 0, unit);
  const held = new Set(Array.from(ends.subarray(0, count)).flatMap((end) => (end === 0 ? [] : [needles[end - 1]])));
  const seen = new Uint8Array(needles.length + 1);

  return {
    nodes: count,
    needles: held.size,
    has: (needle) => held.has(needle),
    search(text) {
      const found: number[] = [];
      let state = 0;
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i);
        state = state === 0 && unit < latinMax ? (first[unit] as number) : follow(state, unit);
        let at = ends[state] === 0 ? (shorter[state] as number) : state;
        // What is found brings all shorter ones with it, so that each is passed once.
        for (; at !== 0 && seen[ends[at] as number] === 0; at = shorter[at] as number) {
          seen[ends[at] as number] = 1;
          found.push(ends[at] as number);
        }
      }
      for (const end of found) seen[end] = 0;
      return new Set(found.map((end) => needles[end - 1] as string));
    },
  };
}

/** As long as this a search by `includes` is quick, whatever the text. */
const shortMax = 256;

/** `text.includes(needle)`, in a time that grows with the sum of their lengths, not with their product. */
export function containsText(text: string, needle: string): boolean {
  if (needle.length > text.length) return false;
  if (needle.length <= shortMax || text.length <= shortMax * 16) return text.includes(needle);
  // Knuth, Morris and Pratt.
  const border = new Uint32Array(needle.length);
  for (let i = 1, length = 0; i < needle.length; i++) {
    while (length > 0 && needle.charCodeAt(i) !== needle.charCodeAt(length)) length = border[length - 1] as number;
    if (needle.charCodeAt(i) === needle.charCodeAt(length)) length++;
    border[i] = length;
  }
  for (let i = 0, length = 0; i < text.length; i++) {
    while (length > 0 && text.charCodeAt(i) !== needle.charCodeAt(length)) length = border[length - 1] as number;
    if (text.charCodeAt(i) === needle.charCodeAt(length)) length++;
    if (length === needle.length) return true;
  }
  return false;
}
