import type { DescMethod } from "@bufbuild/protobuf";

/** What a name leads to. */
export interface Found {
  readonly kind: string;
  readonly name: string;
  /** What distinguishes it from another of the same name. */
  readonly beside?: string;
  readonly hash: string;
}

/** How many of a kind are shown. */
export const ofKindMax = 8;

/** A kind of things that the server knows. */
export interface Source {
  readonly method: DescMethod;
  find(words: string, signal: AbortSignal): Promise<Found[]>;
}

/** Whether what distinguishes a thing holds all the words, whatever their case. */
export function holdsAll({ name, beside = "" }: Found, words: string): boolean {
  const text = `${name} ${beside}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
