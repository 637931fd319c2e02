// Runs before each test file: in CI properties draw the same cases in every run (`seed`).
import { seed } from "./seed.ts";

if (process.env.CI) (await import("fast-check")).default.configureGlobal({ seed });
