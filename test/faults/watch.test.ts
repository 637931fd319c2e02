import { expect, test } from "vitest";
import { seedOf } from "./random.ts";
import { playWatches } from "./watches.ts";

const seed = seedOf(3);
const rounds = 4;
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`with servers and PostgreSQL that are killed, watchers see each change that is stored, once and in order (FAULTS_SEED=${seed})`, async () => {
  expect(await playWatches({ seed, until: { rounds }, say })).toBe(rounds);
});
