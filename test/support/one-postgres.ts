import { test } from "vitest";
import { onCitus } from "./citus.ts";

/** What only one PostgreSQL has, and why a cluster has it not. */
const needed = {
  triggers: "distributed tables take none, and these tests make PostgreSQL fail by one",
  "locks in sight": "that a statement waits for a lock is seen at the tenant's node alone",
  "rows that change their tenant": "a row never changes the column that says where it lies",
};

/** A test that is skipped on a cluster: what it needs stands above. */
export const onOnePostgres = (_need: keyof typeof needed) => test.skipIf(onCitus);
