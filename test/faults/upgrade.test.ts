import { expect, test } from "vitest";
import { seedOf } from "./random.ts";
import { playUpgrade } from "./upgrade.ts";

const seed = seedOf(11);
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`an upgrade under load fails no call, and neither does the way back (FAULTS_SEED=${seed})`, async () => {
  expect(await playUpgrade({ seed, until: { rounds: 1 }, say })).toBe(1);
});
