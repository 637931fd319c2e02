import { expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { say, seedOf } from "./random.ts";
import { playUpgrade } from "./upgrade.ts";

const seed = seedOf(11);

test(`an upgrade under load fails no call, and neither does the way back (SEED=${seed})`, async () => {
  expect(await playUpgrade({ seed, until: { rounds: rounds(1) }, say })).toBe(rounds(1));
});
