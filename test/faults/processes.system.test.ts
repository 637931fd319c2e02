import { expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { playProcesses } from "./processes.ts";
import { say, seedOf } from "./random.ts";

const seed = seedOf(7);

test(`with three processes on one port, what was acknowledged is there, once, whichever is killed (SEED=${seed})`, async () => {
  expect(await playProcesses({ seed, until: { rounds: rounds(6) }, say })).toBe(rounds(6));
});
