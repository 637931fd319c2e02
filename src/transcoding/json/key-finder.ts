import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { exactInteger, int32Range, int64Range, type Range, uint32Range, uint64Range } from "./integer.ts";
import { string } from "./read-string.ts";
import { fail, type Scan, unexpected } from "./scan.ts";

const byDesc = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** The fields of a message by the keys that name them: JSON names, and proto names that no JSON name equals. */
export function fieldsByKey(desc: DescMessage): ReadonlyMap<string, DescField> {
  const known = byDesc.get(desc);
  if (known !== undefined) return known;
  const fields = new Map(desc.fields.map((field) => [field.name, field]));
  for (const field of desc.fields) fields.set(field.jsonName, field);
  byDesc.set(desc, fields);
  return fields;
}

/** Reads a key at `s.at` and answers the entry of that name, without making a string of it. */
export function keyFinder<E extends { readonly key: string }>(entries: readonly E[]): (s: Scan) => E | undefined {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  let size = 16;
  while (size < entries.length * 4) size *= 2;
  const mask = size - 1;
  type Slot = { readonly entry: E; readonly codes: Uint16Array } | undefined;
  const table: Slot[] = new Array<Slot>(size).fill(undefined);
  for (const entry of byKey.values()) {
    let slot = hashOf(entry.key) & mask;
    while (table[slot] !== undefined) slot = (slot + 1) & mask;
    table[slot] = { entry, codes: Uint16Array.from({ length: entry.key.length }, (_, i) => entry.key.charCodeAt(i)) };
  }
  return (s) => {
    const { codes } = s;
    if (codes[s.at] !== 34) unexpected(s, "a key");
    const from = s.at + 1;
    let at = from;
    let hash = 0;
    let c = codes[at] as number;
    while (c !== 34) {
      // An escape, or what no string may hold: let the exact reader see it.
      if (c === 92 || !(c >= 32)) return byKey.get(string(s));
      hash = (Math.imul(hash, 31) + c) | 0;
      c = codes[++at] as number;
    }
    s.at = at + 1;
    const length = at - from;
    let slot = hash & mask;
    for (let entry = table[slot]; entry !== undefined; entry = table[slot]) {
      if (entry.codes.length === length && same(codes, from, entry.codes)) return entry.entry;
      slot = (slot + 1) & mask;
    }
    return undefined;
  };
}

function same(codes: Scan["codes"], from: number, key: Uint16Array): boolean {
  for (let i = 0; i < key.length; i++) if (codes[from + i] !== key[i]) return false;
  return true;
}

function hashOf(key: string): number {
  let hash = 0;
  for (let i = 0; i < key.length; i++) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0;
  return hash;
}

/** Brings a map's key into the one form that the message uses; fails at `keyAt` when it is none of its type. */
export function mapKey(field: DescField & { fieldKind: "map" }): (key: string, keyAt: number) => string {
  switch (field.mapKey) {
    case ScalarType.STRING:
      return (key) => key;
    case ScalarType.BOOL:
      return (key, keyAt) => (key === "true" || key === "false" ? key : fail(keyAt, "the key must be true or false"));
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return integerKey(int32Range);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return integerKey(uint32Range);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return integerKey(uint64Range);
    default:
      return integerKey(int64Range);
  }
}

function integerKey(range: Range): (key: string, keyAt: number) => string {
  return (key, keyAt) => {
    const value = exactInteger(key, range);
    if (typeof value === "string") fail(keyAt, `the key ${value}`);
    return String(value);
  };
}
