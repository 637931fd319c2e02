import { expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { say, seedOf } from "./random.ts";
import { playWindowsOf } from "./windows.ts";

const seed = seedOf(11);
const size = { windows: 20, withinMs: 5000, kills: rounds(1), boundMs: 30_000 };

test(`with two servers that are killed by turns every window starts and ends once, in time, and the states are right (SEED=${seed})`, async () => {
  await expect(playWindowsOf({ seed, say }, size)).resolves.toBeUndefined();
});
