// Builds the console of a checkout into a folder, in a process of its own: the bundler's memory goes with it.
import { stripVTControlCharacters } from "node:util";
import { writeConsole } from "./write-files.ts";

const [root = "", dir = ""] = process.argv.slice(2);
try {
  await writeConsole(root, dir);
} catch (error) {
  process.stderr.write(stripVTControlCharacters((error as Error).message));
  process.exitCode = 1;
}
