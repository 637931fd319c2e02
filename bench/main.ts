// `npm run bench -- [name …] [options]`: runs the benches of this folder, each in a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";

const benches = [
  "read",
  "put",
  "batches",
  "fresh",
  "clients",
  "reads",
  "entities",
  "indexes",
  "models",
  "metrics",
  "accounts",
  "updaters",
  "properties",
  "windows",
  "transcoding",
  "telemetry",
  "events",
  "rules",
  "overload",
  "floods",
  "hostile",
  "notify",
  "scaling",
].filter((name) => existsSync(fileOf(name)));

function fileOf(name: string): string {
  return join(import.meta.dirname, `${name}.ts`);
}

const args = process.argv.slice(2);
const firstOption = args.findIndex((arg) => arg.startsWith("-"));
const names = firstOption < 0 ? args : args.slice(0, firstOption);
const options = firstOption < 0 ? [] : args.slice(firstOption);
const unknown = names.filter((name) => !benches.includes(name));

if (unknown.length > 0) {
  process.stderr.write(`there is no bench ${unknown.join(", ")}; there are ${benches.join(", ")}\n`);
  process.exitCode = 2;
} else {
  process.on("SIGINT", () => {}); // the bench cleans up and ends; then this process does
  for (const [index, name] of (names.length > 0 ? names : benches).entries()) {
    if (index > 0) process.stdout.write("\n\n");
    const child = spawn(process.execPath, [fileOf(name), ...options], { stdio: "inherit" });
    const [code] = await once(child, "exit");
    if (code !== 0) {
      process.exitCode = code ?? 1;
      break;
    }
  }
}
