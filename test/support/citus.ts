import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** Whether the tests run on a cluster with Citus (`npm run test:citus`), whose package TEST_CITUS names. */
export const onCitus = process.env.TEST_PART === "citus";

/** A cluster of PostgreSQL with Citus: the address of each node, the coordinator's first. */
export interface Cluster {
  urls: string[];
  /** The command that starts the nodes that do not run. */
  start: string[];
  stop(): Promise<void>;
}

/**
 * Starts the nodes, holds them until its standard input ends, and removes them: it outlives a run that is killed, and its input ends
 * with the run in whatever way. Citus takes a background worker for each database, of which tests have many: where none is free, a shard that
 * is moved by replication waits for ever.
 */
const keeper = `
"$1/start.sh" "$2" "$3" "$4" >/dev/null && "$1/stop.sh" "$2" && echo "max_worker_processes = 64" | tee -a "$2"/n*/postgresql.conf >/dev/null
url=$("$1/start.sh" "$2" "$3" "$4" | tail -n 1); echo "$url"; exec >&-
cat >/dev/null
"$1/stop.sh" "$2" --remove; rm -rf "$5"`;

/**
 * Starts a coordinator and its workers. `given` is a package (`.tar.gz`) or a folder with a program `start.sh DIR PORT WORKERS`, which starts
 * them and prints the coordinator's address, and `stop.sh DIR --remove`. `dir` is removed with them.
 */
export async function startCluster(given: string, dir: string, workers = 2): Promise<Cluster> {
  const engine = programs(given, dir);
  // As root it runs PostgreSQL as another account.
  const run = join(dir, "nodes");
  mkdirSync(run);
  const port = await freePorts(workers + 1);
  const parameters = [run, String(port), String(workers)];
  const kept = spawn("sh", ["-c", keeper, "keeper", engine, ...parameters, dir], {
    detached: true,
    cwd: "/",
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(kept, "exit");
  const printed = (await text(kept.stdout)).trim();
  if (printed === "") throw new Error("TEST_CITUS: start.sh has failed");
  const coordinator = new URL(printed);
  const urls = Array.from({ length: workers + 1 }, (_, i) =>
    Object.assign(new URL(coordinator), { port: String(port + i) }),
  ).map(({ href }) => href);
  return {
    urls,
    start: [join(engine, "start.sh"), ...parameters],
    async stop() {
      kept.stdin.end();
      await ended;
    },
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
