import { defineConfig } from "vitest/config";
import { closingLine } from "./test/support/closing-line.ts";

export default defineConfig({
  test: {
    environment: "node",
    include: ["test/**/*.test.ts"],
    // One PostgreSQL for the whole run; each test file clones its database from a template. The layout needs none.
    globalSetup: process.env.TEST_DATABASE_URL === "none" ? [] : ["test/support/database.ts"],
    pool: "forks",
    maxWorkers: "100%",
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    allowOnly: false,
    reporters: ["default", closingLine()],
  },
});
