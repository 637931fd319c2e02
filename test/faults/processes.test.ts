import { expect, test } from "vitest";
import { playProcesses } from "./processes.ts";
import { seedOf } from "./random.ts";

const seed = seedOf(7);
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`with three processes on one port, what was acknowledged is there, once, whichever is killed (FAULTS_SEED=${seed})`, async () => {
  expect(await playProcesses({ seed, until: { rounds: 6 }, say })).toBe(6);
});
