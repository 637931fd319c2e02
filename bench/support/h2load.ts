import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Load, type Outcome, quantile } from "../load/load.ts";
import type { Generator } from "./generator.ts";
import { placed } from "./machine.ts";

const execute = promisify(execFile);

/** h2load of nghttp2. It counts a number of requests, not a time, so that all of them are known; the first run finds the number. */
export function h2load(): Generator {
  const dir = mkdtempSync(join(tmpdir(), "belfry-h2load-"));
  const rates = new Map<string, number>();

  async function run(load: Load): Promise<Outcome> {
    const known = `${load.port} ${load.request.path}`;
    const rate = rates.get(known) ?? 1000;
    const count = Math.max(load.connections * load.streams, Math.round((rate * load.countMs) / 1000));
    const [program, args] = placed("generator", ["h2load", ...argumentsOf(load, count, dir)]);
    const { stdout } = await execute(program, args);
    const [, seconds] = /finished in ([\d.]+)(m?s)/.exec(stdout) ?? [];
    const [, good] = /status codes: (\d+) 2xx/.exec(stdout) ?? [];
    const [, perSec] = /, ([\d.]+) req\/s/.exec(stdout) ?? [];
    if (seconds === undefined || good === undefined || perSec === undefined) throw new Error(`h2load: ${stdout}`);
    rates.set(known, Number(perSec));
    const times = readFileSync(join(dir, "log"), "utf8").trimEnd().split("\n");
    const sorted = Float64Array.from(times, (line) => Number(line.split("\t")[2]) / 1000).sort();
    return {
      perSec: Number(perSec),
      p50Ms: quantile(sorted, 0.5),
      p99Ms: quantile(sorted, 0.99),
      answered: count,
      bad: count - Number(good),
      busy: undefined,
    };
  }

  return {
    name: "h2load",
    run,
    async [Symbol.asyncDispose]() {
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function argumentsOf({ port, request, connections, streams }: Load, count: number, dir: string): string[] {
  const args = [`--requests=${count}`, `--clients=${connections}`, `--max-concurrent-streams=${streams}`];
  const log = join(dir, "log");
  rmSync(log, { force: true }); // it would be added to
  args.push(`--log-file=${log}`);
  if (request.http === 1) args.push("--h1");
  for (const [name, value] of Object.entries(request.headers)) args.push(`--header=${name}: ${value}`);
  if (request.body !== undefined) {
    writeFileSync(join(dir, "body"), request.body);
    args.push(`--data=${join(dir, "body")}`);
  }
  return [...args, `http://127.0.0.1:${port}${request.path}`];
}
