// `npm run bench -- [name …] [options]`: runs the benches of this folder, each in a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeDatabase } from "./support/leftovers.ts";

const benches = [
  "read",
  "put",
  "batches",
  "fresh",
  "clients",
  "reads",
  "entities",
  "metrics",
  "events",
  "overload",
  "hostile",
  "notify",
  "scaling",
  "processes",
  "citus",
  "console",
];
/** Compares with another commit, so it is run by its name alone. */
const guard = "guard";

function fileOf(name: string): string {
  return join(import.meta.dirname, `${name}.ts`);
}

/** A folder for all temporary files of a bench, so that nothing is left even of one that was killed. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "belfry-bench-run-"));
  chmodSync(folder, 0o711); // the database's own account must enter it
  return folder;
}

function clear(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith("belfry-bench-")) removeDatabase(join(folder, name));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

const args = process.argv.slice(2);
const firstOption = args.findIndex((arg) => arg.startsWith("-"));
// What follows the name of the guard is a commit.
const namesEnd = args[0] === guard ? 1 : firstOption < 0 ? args.length : firstOption;
const names = args.slice(0, namesEnd);
const options = args.slice(namesEnd);
const keep = options.includes("--keep");
const unknown = names.filter((name) => name !== guard && !benches.includes(name));

if (unknown.length > 0) {
  process.stderr.write(`there is no bench ${unknown.join(", ")}; there are ${[...benches, guard].join(", ")}\n`);
  process.exitCode = 2;
} else {
  for (const [index, name] of (names.length > 0 ? names : benches).entries()) {
    if (index > 0) process.stdout.write("\n\n");
    const code = await run(name);
    if (code !== 0) {
      process.exitCode = code;
      break;
    }
  }
}

async function run(name: string): Promise<number> {
  const folder = temporaryFolder();
  const child = spawn(process.execPath, [fileOf(name), ...options.filter((option) => option !== "--keep")], {
    stdio: "inherit",
    env: { ...process.env, TMPDIR: folder, ...(keep && { BENCH_KEEP: "1" }) },
  });
  // The bench cleans up and ends; then this process does. A terminal has sent Ctrl-C to both already.
  const pass = (signal: NodeJS.Signals) => void child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, pass);
  try {
    const [code] = await once(child, "exit");
    return code ?? 1;
  } finally {
    clear(folder);
    for (const signal of signals) process.off(signal, pass);
  }
}
