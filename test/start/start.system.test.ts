import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../..");
/** The Node of the machine, older than the one that the server needs. */
const oldNode = ["/usr/bin/node", "/usr/local/bin/node"].find((path) => existsSync(path)) ?? process.execPath;

// Says what it got, and leaves with 7 at SIGTERM and at a second signal.
const program = `
  let signals = 0;
  const got = (name: string) => {
    console.log("got", name);
    signals += 1;
    if (signals === 2 || name === "SIGTERM" || name === "disconnect") process.exit(7);
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => got(name));
  process.on("disconnect", () => got("disconnect"));
  console.log("up", process.version, process.argv.slice(2).join(","), process.env.GREETING);
  if (process.argv[2] === "exit") process.exit(Number(process.argv[3]));
  if (process.argv[2] === "die") process.kill(process.pid, "SIGKILL");
  setInterval(() => undefined, 1000);
`;

const { optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const nodePackage =
  Object.keys(optionalDependencies).find((name) => existsSync(join(root, "node_modules", name))) ?? "";

/** A checkout with the launcher, this program in the server's place, and of the packages only Node. */
function checkout(): string {
  const dir = mkdtempSync(join(tmpdir(), "belfry-start-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (const name of ["start.js", "package.json"]) copyFileSync(join(root, name), join(dir, name));
  mkdirSync(join(dir, "src"));
  writeFileSync(join(dir, "src/main.ts"), program);
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(join(root, "node_modules", nodePackage), join(dir, "node_modules", nodePackage));
  return dir;
}

function started(command: string, args: string[], cwd: string, options = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, GREETING: "hello" }, ...options });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  const exit = new Promise<number | string>((resolve) =>
    child.on("exit", (code, signal) => resolve(code ?? signal ?? -1)),
  );
  const until = async (text: string) => {
    while (!said.includes(text)) await sleep(10);
  };
  return { child: child as ChildProcess, exit, until, said: () => said };
}

const start = (dir: string, ...args: string[]) => started(oldNode, ["start.js", ...args], dir);

test("the server runs on the Node of its packages, with arguments and environment, and its exit code comes out", async () => {
  const { exit, said } = start(checkout(), "exit", "5");
  expect(await exit).toBe(5);
  expect(said()).toContain(`up ${process.version} exit,5 hello`);
});

test("each script of package.json runs on the same Node, whether npm has linked it or not", async () => {
  const dir = checkout();
  mkdirSync(join(dir, "scripts"));
  copyFileSync(join(root, "scripts/own-node.sh"), join(dir, "scripts/own-node.sh"));
  const { scripts } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  const others = Object.entries<string>(scripts).filter(
    ([, script]) => !script.startsWith(". scripts/own-node.sh && "),
  );
  expect(others.map(([, script]) => script)).toEqual(["exec node start.js serve", "exec node start.js"]);
  const PATH = `${dirname(oldNode)}:/usr/bin:/bin`;
  const { exit, said } = started("sh", ["-c", ". scripts/own-node.sh && node --version"], dir, { env: { PATH } });
  expect(await exit).toBe(0);
  expect(said()).toBe(`${process.version}\n`);
});

test("what a server has compiled is kept beside its data, where no one else writes, once there is a data directory", async () => {
  const dir = checkout();
  const data = join(dir, "data");
  async function served(...args: string[]) {
    const server = started(oldNode, ["start.js", ...args], dir, {
      env: { ...process.env, BELFRY_DATA_DIR: "data", NODE_COMPILE_CACHE: undefined },
    });
    await server.until("up");
    server.child.kill("SIGTERM");
    await server.exit;
  }
  await served("serve");
  expect(existsSync(data)).toBe(false);
  mkdirSync(data);
  await served("credential");
  expect(readdirSync(data)).toEqual([]);
  await served("serve");
  expect(readdirSync(join(data, "compiled"))).toHaveLength(1);
  expect(statSync(join(data, "compiled")).mode & 0o777).toBe(0o700);
});

test("a server that a signal ended is seen to have ended by it", async () => {
  expect(await start(checkout(), "die").exit).toBe("SIGKILL");
});

const [apart, ...inContainer] = ["unshare", "--pid", "--fork", "--kill-child"];
test.runIf(spawnSync(apart as string, [...inContainer, "true"]).status === 0)(
  "the first process of a container, which no signal of its own ends, ends with code 1",
  async () => {
    const { exit } = started(apart as string, [...inContainer, oldNode, "start.js", "die"], checkout());
    expect(await exit).toBe(1);
  },
);

test("what is missing is named with its cure: packages, the one of Node, the right version", async () => {
  const bare = checkout();
  rmSync(join(bare, "node_modules"), { recursive: true });
  const noPackages = start(bare);
  expect(await noPackages.exit).toBe(1);
  expect(noPackages.said()).toBe("belfry cannot start: its packages are not installed. Run:  npm ci\n");

  const other = checkout();
  const nodeDir = join(other, "node_modules", nodePackage);
  rmSync(nodeDir);
  mkdirSync(join(other, "node_modules/fastify"));
  writeFileSync(join(other, "node_modules/fastify/package.json"), "{}");
  const noNode = start(other);
  expect(await noNode.exit).toBe(1);
  expect(noNode.said()).toBe(
    `belfry cannot start: Node ${optionalDependencies[nodePackage]}, the optional package ${nodePackage}, is not installed. Run:  npm ci --include=optional\n`,
  );

  mkdirSync(nodeDir);
  writeFileSync(join(nodeDir, "package.json"), JSON.stringify({ version: "22.0.0" }));
  const wrongVersion = start(other);
  expect(await wrongVersion.exit).toBe(1);
  expect(wrongVersion.said()).toMatch(/needs Node .*, and 22.0.0 is installed .*npm ci\n$/);
});

test("SIGTERM is passed on, and a closed terminal as SIGTERM", async () => {
  for (const signal of ["SIGTERM", "SIGHUP"] as const) {
    const { child, exit, until, said } = start(checkout());
    await until("up");
    child.kill(signal);
    expect(await exit).toBe(7);
    expect(said()).toContain("got SIGTERM");
  }
});

test("a signal that comes twice at once is one, a later one is a second", async () => {
  const { child, exit, until, said } = start(checkout());
  await until("up");
  child.kill("SIGINT");
  await sleep(50);
  child.kill("SIGINT");
  await sleep(500);
  expect(said().match(/got SIGINT/g)).toHaveLength(1);
  child.kill("SIGINT");
  expect(await exit).toBe(7);
});

test("npm start: SIGTERM reaches the server once, and npm ends with it", async () => {
  const { child, exit, until, said } = started("npm", ["start"], checkout());
  await until("up");
  child.kill("SIGTERM");
  await exit;
  expect(said().match(/got SIGTERM/g)).toHaveLength(1);
});

test("npm start, and npm is killed: the server stops", async () => {
  const { child, until, said } = started("npm", ["start"], checkout());
  await until("up");
  child.kill("SIGKILL");
  await until("got SIGTERM");
  expect(said().match(/got SIGTERM/g)).toHaveLength(1);
});

test("the launcher is killed: the server is told", async () => {
  const { child, until } = start(checkout());
  await until("up");
  child.kill("SIGKILL");
  await until("got disconnect");
});

test.runIf(existsSync("/usr/bin/script"))("npm start in a terminal: each Ctrl-C is one SIGINT", async () => {
  const terminal = started("script", ["-qec", "npm start", "/dev/null"], checkout(), {
    stdio: ["pipe", "pipe", "pipe"],
  });
  await terminal.until("up");
  terminal.child.stdin?.write("\u0003");
  await terminal.until("got SIGINT");
  await sleep(600);
  expect(terminal.said().match(/got SIGINT/g)).toHaveLength(1);
  terminal.child.stdin?.write("\u0003");
  await terminal.exit;
  expect(terminal.said().match(/got SIGINT/g)).toHaveLength(2);
});
