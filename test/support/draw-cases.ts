// Runs before each test file: properties draw the cases of this run's seed.
import fc from "fast-check";
import { seed } from "./cases.ts";

fc.configureGlobal({ seed });
