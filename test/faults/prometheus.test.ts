import { expect, test } from "vitest";
import { installed } from "../integrations/programs.ts";
import { playPrometheus } from "./prometheus.ts";
import { seedOf } from "./random.ts";

const seed = seedOf(5);
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test.runIf(installed("prometheus"))(
  `every sample that Prometheus has is stored, after kill -9 of the server and overload (FAULTS_SEED=${seed})`,
  async () => {
    expect(await playPrometheus({ seed, until: { rounds: 2 }, say })).toBe(2);
  },
);
