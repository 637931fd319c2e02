import { expect, test } from "vitest";
import { sized } from "../support/part.ts";
import { seedOf } from "./random.ts";
import { playWindowsOf } from "./windows.ts";

const seed = seedOf(11);
const size = sized(
  { windows: 12, withinMs: 4000, kills: 1, boundMs: 30_000 },
  { windows: 40, withinMs: 8000, kills: 2 },
);
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`with two servers that are killed by turns every window starts and ends once, in time, and the states are right (FAULTS_SEED=${seed})`, async () => {
  await expect(playWindowsOf({ seed, say }, size)).resolves.toBeUndefined();
}, 400_000);
