import { expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { seedOf } from "./random.ts";
import { playFailpoints } from "./scenes.ts";

const seed = seedOf(7);

test(`a server that dies at any failpoint loses nothing that it acknowledged, also while it starts (SEED=${seed})`, async () => {
  // `npm run faults` plays all.
  expect(await playFailpoints({ seed, until: { rounds: rounds(4) }, say: () => undefined })).toBe(rounds(4));
});
