import { seed } from "../support/cases.ts";

/** Numbers that a seed decides: the same seed, the same plan. */
export interface Random {
  /** From 0 inclusive to 1 exclusive. */
  next(): number;
  /** A whole number from `min` to `max`, both inclusive. */
  int(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
}

/** Mulberry32: small, and good enough to choose faults. Sources of one seed and different streams have nothing in common. */
export function random(seed: number, stream = 0): Random {
  let state = (seed ^ Math.imul(stream + 1, 0x9e3779b9)) >>> 0;
  function next() {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
  return {
    next,
    int: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick: (list) => list[Math.floor(next() * list.length)] as never,
  };
}

/** The seed of a scene: SEED, or the short one of the gate. */
export const seedOf = (short: number): number => (process.env.SEED === undefined ? short : seed);

/** Prints what a scene does where its seed was given. */
export const say = (line: string): void => {
  if (process.env.SEED !== undefined) console.log(line);
};
