import { describe, expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { say, seedOf } from "./random.ts";
import { playKills, playTwoServers } from "./scenes.ts";

const seed = seedOf(5);
const [kills, acts] = [rounds(4), rounds(5)];

describe(`what was acknowledged is there, once, and as the documentation says (SEED=${seed})`, () => {
  test("after kill -9 of the server, of PostgreSQL, and of both", async () => {
    expect(await playKills({ seed, until: { rounds: kills }, say })).toBe(kills);
  });

  test("with two servers on one database, killed, paused and cut off", async () => {
    expect(await playTwoServers({ seed, until: { rounds: acts }, say })).toBe(acts);
  });
});
