import { expect, test } from "vitest";
import { seedOf } from "./random.ts";
import { playFailpoints } from "./scenes.ts";

const seed = seedOf(7);

test(`a server that dies at any failpoint loses nothing that it acknowledged, also while it starts (FAULTS_SEED=${seed})`, async () => {
  // `npm run faults` plays all.
  const rounds = 4;
  expect(await playFailpoints({ seed, until: { rounds }, say: () => undefined })).toBe(rounds);
});
