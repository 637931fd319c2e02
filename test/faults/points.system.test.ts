import { describe, expect, test } from "vitest";
import { rounds } from "../support/cases.ts";
import { playPoints, playPointsOfTwo } from "./points.ts";
import { say, seedOf } from "./random.ts";

const seed = seedOf(3);
const [ofOne, ofTwo] = [rounds(3), rounds(2)];

describe(`every acknowledged point is there, once, with the value that was acknowledged last (SEED=${seed})`, () => {
  test("after kill -9 of the server, of PostgreSQL, and in the middle of a merge", async () => {
    expect(await playPoints({ seed, until: { rounds: ofOne }, say })).toBe(ofOne);
  });

  test("with two servers on one database that take and merge points at the same time, and die", async () => {
    expect(await playPointsOfTwo({ seed, until: { rounds: ofTwo }, say })).toBe(ofTwo);
  });
});
