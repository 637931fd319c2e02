import { describe, expect, test } from "vitest";
import { playPoints, playPointsOfTwo } from "./points.ts";
import { seedOf } from "./random.ts";

const seed = seedOf(3);
const [ofOne, ofTwo] = [3, 2];
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

describe(`every acknowledged point is there, once, with the value that was acknowledged last (FAULTS_SEED=${seed})`, () => {
  test("after kill -9 of the server, of PostgreSQL, and in the middle of a merge", async () => {
    expect(await playPoints({ seed, until: { rounds: ofOne }, say })).toBe(ofOne);
  });

  test("with two servers on one database that take and merge points at the same time, and die", async () => {
    expect(await playPointsOfTwo({ seed, until: { rounds: ofTwo }, say })).toBe(ofTwo);
  });
});
