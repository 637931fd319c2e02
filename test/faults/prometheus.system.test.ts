import { expect, test } from "vitest";
import { installed } from "../integrations/programs.ts";
import { rounds } from "../support/cases.ts";
import { playPrometheus } from "./prometheus.ts";
import { say, seedOf } from "./random.ts";

const seed = seedOf(5);

test.runIf(installed("prometheus"))(
  `every sample that Prometheus has is stored, after kill -9 of the server and overload (SEED=${seed})`,
  async () => {
    expect(await playPrometheus({ seed, until: { rounds: rounds(2) }, say })).toBe(rounds(2));
  },
);
