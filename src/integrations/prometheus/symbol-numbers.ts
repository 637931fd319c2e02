import { copyOf, hashOf, knownBytes } from "../known-bytes.ts";
import type { BytesAt } from "./write-request.ts";

/** Numbers of the symbols that requests of version 2 name their series with: a symbol that is remembered has the one that it had before. */
export interface SymbolNumbers {
  /** Undefined: it is not remembered. */
  find(symbol: SymbolBytes): number | undefined;
  /** Remembers it under a number that no other symbol had. */
  add(symbol: SymbolBytes): number;
}

/** Whose symbols they are; `seed` is of its own for each owner: the same symbols of many are no entries of one hash. */
export interface SymbolOwner {
  readonly owner: string;
  readonly seed: number;
}

type SymbolBytes = SymbolOwner & Readonly<BytesAt>;

const rememberedBytesMax = 48 * 1024 * 1024;

/** Begins without any. */
export function symbolNumbers(): SymbolNumbers {
  const known = knownBytes<number>(rememberedBytesMax);
  let last = 0;
  const hash = ({ seed, view, from, to }: SymbolBytes) => hashOf(view, from, to) ^ seed;
  return {
    find: (symbol) => known.find(symbol.owner, hash(symbol), symbol.bytes, symbol.from, symbol.to),
    add(symbol) {
      last += 1;
      known.set(symbol.owner, hash(symbol), copyOf(symbol.bytes, symbol.from, symbol.to), last);
      return last;
    },
  };
}
