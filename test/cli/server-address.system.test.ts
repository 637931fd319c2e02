import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readSettings } from "../../examples/host-agent/settings.ts";
import { clear, clusterPlace, place } from "../faults/place.ts";

const root = join(import.meta.dirname, "../..");
const [dir, fresh] = [await clusterPlace(), await place()];

afterAll(() => Promise.all([clear(dir), clear(fresh)]));

function run(
  env: Record<string, string>,
  command: string,
  args: string[],
): { child: ChildProcess; said: () => string } {
  const all = { PATH: process.env.PATH, BELFRY_DATA_DIR: dir, ...env };
  const child = spawn(command, args, { cwd: root, env: all, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  return { child, said: () => said };
}

const belfry = (env: Record<string, string>, ...args: string[]) => run(env, process.execPath, ["start.js", ...args]);

async function finished({ child, said }: ReturnType<typeof run>) {
  await once(child, "close");
  return said();
}

async function served({ child, said }: ReturnType<typeof run>): Promise<string> {
  for (;;) {
    const [, url] = /Belfry serves at (https:\/\/localhost:\d+)/.exec(said()) ?? [];
    if (url !== undefined) return url;
    const [event] = await Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), once(child, "exit")]);
    if (typeof event === "number") throw new Error(`the server ended: ${said()}`);
  }
}

async function stop({ child }: ReturnType<typeof run>) {
  child.kill("SIGTERM");
  await once(child, "exit");
}

test("commands and the agent find the server of a data directory at whatever port it took", async () => {
  const server = belfry({ BELFRY_PORT: "0" }, "serve");
  const url = await served(server);
  expect(readFileSync(join(dir, "server.url"), "utf8")).toBe(`${url}\n`);
  expect(await finished(belfry({}, "console"))).toContain(`${url}/console/#first=`);
  expect(readSettings({ BELFRY_DATA_DIR: dir }).url).toBe(url);

  const onlyTenant = /^belfry: console needs --tenant <name>, since there are several tenants: default, north$/m;
  await finished(belfry({}, "tenants", "create", "north"));
  expect(await finished(belfry({}, "console"))).toMatch(onlyTenant);
  expect(await finished(belfry({}, "console", "--tenant", "north"))).toContain(`${url}/console/#first=`);
  await stop(server);
});

test("a port in use is named before PostgreSQL is initialised", async () => {
  const other = createServer().listen(0, "localhost");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  const said = await finished(belfry({ BELFRY_DATA_DIR: fresh, BELFRY_PORT: String(port) }, "serve"));
  other.close();
  expect(said).toBe(`belfry: port ${port} on localhost is in use; set BELFRY_PORT to another one\n`);
  expect(existsSync(join(fresh, "postgres"))).toBe(false);
});

test("a terminal is shown lines that people read, other readers JSON", async () => {
  const command = `${process.execPath} start.js serve`;
  const onTerminal = run({ BELFRY_PORT: "0" }, "script", ["-qefc", command, "/dev/null"]);
  await served(onTerminal);
  // Lines are gathered for a moment.
  await expect.poll(onTerminal.said).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}serving .*version=/m);
  await stop(onTerminal);
  expect(onTerminal.said()).not.toContain('{"level"');
  const piped = belfry({ BELFRY_PORT: "0" }, "serve");
  await served(piped);
  await stop(piped);
  expect(piped.said()).toMatch(/^\{"level":30,.*"msg":"serving"\}$/m);
});
