import { expect, test } from "vitest";
import { playPausesOf } from "./pauses.ts";
import { seedOf } from "./random.ts";

const seed = seedOf(5);
const rounds = 3;
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`a server, PostgreSQL or both that stand still for longer than each lease lose and double nothing, and serve again within seconds (FAULTS_SEED=${seed})`, async () => {
  const play = { seed, until: { rounds }, say };
  // Twice the least lease there is; `npm run faults -- --scene pauses` stands still for 40 s.
  expect(await playPausesOf(play, { pauseMs: 2000, env: { TEST_LIMITS: JSON.stringify({ jobLeaseMs: 1000 }) } })).toBe(
    rounds,
  );
});
