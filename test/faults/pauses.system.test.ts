import { expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { playPausesOf } from "./pauses.ts";
import { say, seedOf } from "./random.ts";

const seed = seedOf(5);
const pauses = rounds(3);

test(`a server, PostgreSQL or both that stand still for longer than each lease lose and double nothing, and serve again within seconds (SEED=${seed})`, async () => {
  const play = { seed, until: { rounds: pauses }, say };
  // Twice the least lease there is; `npm run faults -- --scene pauses` stands still for 40 s.
  expect(await playPausesOf(play, { pauseMs: 2000, env: { TEST_LIMITS: JSON.stringify({ jobLeaseMs: 1000 }) } })).toBe(
    pauses,
  );
});
