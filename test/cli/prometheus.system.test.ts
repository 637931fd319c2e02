import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { clear, clusterPlace } from "../faults/place.ts";

const root = join(import.meta.dirname, "../..");
const dir = await clusterPlace();

afterAll(() => clear(dir));

describe("serve --prometheus", () => {
  test("prints the same block at each start, with a key that may send and read nothing", async () => {
    const first = await started(["--prometheus"]);
    const { config, rules } = printed(first.said);
    const [manager] = config.alerting.alertmanagers;
    const { from: keyFile, mode, to } = installed(first.said, "belfry.key");
    expect([keyFile, mode]).toEqual([join(dir, "prometheus.key"), "0400"]);
    expect(manager.authorization.credentials_file).toBe(to);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    const key = readFileSync(keyFile, "utf8").trim();
    expect(first.said).not.toContain(key);
    const url = `${manager.scheme}://${manager.static_configs[0].targets[0]}`;
    expect(config.remote_write[0].url).toBe(`${url}/api/v1/write`);
    expect(config.remote_write[0].authorization).toEqual(manager.authorization);
    const caFile = installed(first.said, "belfry-ca.pem");
    expect(manager.tls_config.ca_file).toBe(caFile.to);
    const ca = readFileSync(caFile.from);
    const call = (path: string, body: string) => post(new URL(path, url), key, ca, body);
    expect(await call("/api/v2/alerts", '[{"labels":{"alertname":"TargetDown","job":"shop"}}]')).toBe(200);
    expect(await call("/v1/events:search", '{"query":{}}')).toBe(403);
    expect(rules.groups[0].rules).toMatchObject([{ alert: "TargetDown", expr: "up == 0" }, { alert: "DiskFull" }]);
    await first.stop();

    const second = await started(["--prometheus"]);
    expect(installed(second.said, "belfry.key").from).toBe(keyFile);
    expect(readFileSync(keyFile, "utf8").trim()).toBe(key);
    await second.stop();
  });

  test("prints two calls that page for what it prints, and the rule has no trouble", async () => {
    const server = await started(["--prometheus"]);
    const [destination = "", rule = "", ...others] = server.said
      .slice(server.said.indexOf("Two calls"))
      .split("\n")
      .filter((line) => line.startsWith("curl"))
      .map((line) => shell(line.replace("YOUR-INTEGRATION-KEY", "R0utingKeyOf32Characters00000000")));
    expect(others).toEqual([]);
    expect(JSON.parse(destination).destination).toMatchObject({ name: "pager", trouble: "" });
    expect(JSON.parse(rule).rule).toMatchObject({
      enabled: true,
      sendUpdates: true,
      triggerNames: [],
      matchers: ['alertname=~"TargetDown|DiskFull"'],
      destinationNames: ["pager"],
      trouble: "",
    });
    await server.stop();
  });

  test("needs the name of a tenant where there are several, and keeps a key for each", async () => {
    await command("tenants", "create", "other");
    expect(await command("serve", "--prometheus")).toMatch(
      /^belfry: --prometheus needs --tenant <name>, since there are several tenants: default, other$/m,
    );
    expect(await command("serve", "--prometheus", "--tenant", "missing")).toMatch(
      /^belfry: --tenant: there is no tenant "missing"$/m,
    );
    const key = readFileSync(join(dir, "prometheus.key"), "utf8");
    const own = await started(["--prometheus", "--tenant", "default"]);
    expect(installed(own.said, "belfry.key").from).toBe(join(dir, "prometheus.key"));
    await own.stop();
    const other = await started(["--prometheus", "--tenant", "other"]);
    const otherFile = installed(other.said, "belfry.key").from;
    expect(readFileSync(otherFile, "utf8")).not.toBe(key);
    expect(readFileSync(join(dir, "prometheus.key"), "utf8")).toBe(key);
    await other.stop();
  });

  test("--tenant without --prometheus is refused", async () => {
    expect(await command("serve", "--tenant", "default")).toContain("serve is not called like this");
  });
});

const env = { PATH: process.env.PATH, BELFRY_DATA_DIR: dir, BELFRY_PORT: "0", BELFRY_LOG_LEVEL: "error" };

/** Starts a server, and resolves when it has printed its welcome and the block. */
async function started(args: string[]) {
  const server = run("serve", ...args);
  let said = "";
  server.stdout?.on("data", (text) => (said += text));
  while (!/"destinationNames":\["pager"\].*\n\n/.test(said)) {
    const [event] = await Promise.race([once(server.stdout as NodeJS.ReadableStream, "data"), once(server, "exit")]);
    if (typeof event === "number") throw new Error(`the server ended: ${said}`);
  }
  const stop = async () => {
    server.kill("SIGTERM");
    await once(server, "exit");
  };
  return { said, stop };
}

/** Runs a line that the server has printed, as people paste it. */
const shell = (line: string) =>
  execFileSync("sh", ["-c", line.replace(/^curl/, "curl -sS")], { cwd: root, encoding: "utf8" });

/** Runs a command to its end; returns what it printed. */
async function command(...args: string[]): Promise<string> {
  const child = run(...args);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  await once(child, "close");
  return said;
}

function run(...args: string[]): ChildProcess {
  return spawn(process.execPath, ["start.js", ...args], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Reads the line that gives Prometheus a file of this name. */
function installed(said: string, name: string) {
  const line = new RegExp(`^sudo install -o prometheus -g prometheus -m (\\d+) (\\S+) (/etc/prometheus/${name})$`, "m");
  const [, mode = "", from = "", to = ""] = line.exec(said) ?? [];
  return { mode, from, to };
}

/** Parses the two documents that follow each other's sentence. */
function printed(said: string) {
  const [config = "", rules = ""] = [
    said.slice(said.indexOf("alerting:"), said.indexOf("Save these rules")),
    said.slice(said.indexOf("groups:"), said.indexOf("Two calls")),
  ].map((text) => text.trim());
  const [parsedConfig, parsedRules] = [config, rules].map((text) => {
    const [document] = parseAllDocuments(text);
    expect(document?.errors).toEqual([]);
    return document?.toJS();
  });
  return { config: parsedConfig, rules: parsedRules };
}

function post(url: URL, key: string, ca: Buffer, body: string): Promise<number | undefined> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    request(url, { method: "POST", headers, ca }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end(body);
  });
}
