import { expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { say, seedOf } from "./random.ts";
import { playWatches } from "./watches.ts";

const seed = seedOf(3);

test(`with servers and PostgreSQL that are killed, watchers see each change that is stored, once and in order (SEED=${seed})`, async () => {
  expect(await playWatches({ seed, until: { rounds: rounds(4) }, say })).toBe(rounds(4));
});
