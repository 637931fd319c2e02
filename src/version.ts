import { readFileSync } from "node:fs";
import { join } from "node:path";

const file = join(import.meta.dirname, "../package.json");

/** The version of this server, as `package.json` names it: MAJOR.MINOR.PATCH (semver.org). */
export const version: string = JSON.parse(readFileSync(file, "utf8")).version;

/** How a command is called: from a checkout by npm's script, from the npm package by its program. */
export const program = import.meta.filename.endsWith(".ts") ? "npm run belfry --" : "npx belfry";
