import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** A cluster of PostgreSQL with Citus: the address of each node, the coordinator's first. */
export interface Cluster {
  urls: string[];
  /** The command that starts the nodes that do not run. */
  start: string[];
  stop(): void;
}

/** How many workers the cluster of the tests has. */
const workers = 2;

/**
 * Starts a coordinator and two workers. `given` is a package (`.tar.gz`) or a folder with a program `start.sh DIR PORT WORKERS`, which starts
 * them and prints the coordinator's address, and `stop.sh DIR --remove`.
 */
export async function startCluster(given: string, dir: string): Promise<Cluster> {
  const engine = programs(given, dir);
  // As root it runs PostgreSQL as another account.
  const run = join(dir, "nodes");
  mkdirSync(run);
  const port = await freePorts(workers + 1);
  const start = [join(engine, "start.sh"), run, String(port), String(workers)] as const;
  const [program, ...parameters] = start;
  const printed = execFileSync(program, parameters, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const coordinator = new URL(printed.trim().split("\n").at(-1) as string);
  const urls = Array.from({ length: workers + 1 }, (_, i) =>
    Object.assign(new URL(coordinator), { port: String(port + i) }),
  ).map(({ href }) => href);
  return {
    urls,
    start: [...start],
    stop: () => void execFileSync(join(engine, "stop.sh"), [run, "--remove"], { stdio: "ignore" }),
  };
}

/** The folder with `start.sh`: the given one, or what is in the package. */
function programs(given: string, dir: string): string {
  if (!existsSync(given)) throw new Error(`TEST_CITUS: there is no ${given}`);
  let folder = given;
  if (!statSync(given).isDirectory()) {
    folder = join(dir, "engine");
    mkdirSync(folder);
    execFileSync("tar", ["-xzf", given, "-C", folder, "--strip-components", "1"]);
  }
  if (existsSync(join(folder, "start.sh"))) return folder;
  const packed = readdirSync(folder).find((name) => /citus.*\.tar\.gz$/.test(name));
  if (packed === undefined) throw new Error(`TEST_CITUS: ${given} has neither start.sh nor a package of Citus`);
  return programs(join(folder, packed), dir);
}

/** The first of `count` ports in a row that nothing listens on. */
async function freePorts(count: number): Promise<number> {
  const isFree = (port: number) =>
    new Promise<boolean>((resolve) => {
      const probe = createServer().once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
  for (let port = 21_000 + (process.pid % 500) * 10; ; port += count) {
    const free = await Promise.all(Array.from({ length: count }, (_, i) => isFree(port + i)));
    if (free.every(Boolean)) return port;
  }
}
