import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { tenantCommand } from "../../src/cli/tenants.ts";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { temporaryDir } from "../support/database.ts";
import { compiled, program } from "../support/program.ts";
import { testServer } from "../support/server.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({});
const main = await program();

/** Runs a command line to its end. */
async function belfry(args: string[], env: Record<string, string> = { DATABASE_URL: server.database.url }) {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH, HOME, NODE_COMPILE_CACHE: compiled, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => {
    out += text;
  });
  child.stderr.on("data", (text) => {
    err += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, out, err };
}

/** The same within this process, where starting a program is not what is tested. */
const run = (...args: string[]) => (tenantCommand(args) ?? expect.fail(args.join(" ")))(server.database.sql);

const keyIn = (text: string) => /bf_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/.exec(text)?.[0] ?? "";

describe("on the database of a server that runs", () => {
  test("a tenant, a client and a key are made, listed and taken away, and each action is in the audit log", async () => {
    const tenant = await belfry(["tenants", "create", "north"]);
    expect(tenant).toMatchObject({ code: 0, err: "" });
    const call = v1(server.url, { "service-api-key": keyIn(tenant.out) });
    const listed = await run("tenants", "list");
    expect(listed).toMatch(/^[0-9a-f-]{36} {2}north$/m);
    const tenantId = /^(\S+) {2}north$/m.exec(listed)?.[1] ?? "";

    const clientId = (await run("clients", "create", "north", "agent of web-1", "USER", "read_only_user")).trim();
    expect((await call("GET", `/v1/api-clients/${clientId}`)).body).toMatchObject({
      apiClient: { name: "agent of web-1", type: "USER", role: "read_only_user" },
    });
    expect(await run("clients", "list", tenantId)).toContain(
      `${clientId}  USER             read_only_user  agent of web-1`,
    );

    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const made = await belfry([
      "keys",
      "create",
      "north",
      clientId,
      "--description",
      "for web-1",
      "--expires",
      expires,
    ]);
    const secret = keyIn(made.out);
    const own = v1(server.url, { "service-api-key": secret });
    expect((await own("POST", "/v1/events:search", { query: {} })).status).toBe(200);
    const keys = await run("keys", "list", "north", clientId);
    expect(keys).toContain(`expires ${expires}`);
    expect(keys).toContain("for web-1");
    expect(keys).not.toContain(secret.slice(16));

    const keyId = keys.split(" ")[0] ?? "";
    expect((await belfry(["keys", "revoke", "north", clientId, keyId])).code).toBe(0);
    await expect
      .poll(async () => (await own("POST", "/v1/events:search", { query: {} })).status, { timeout: 1000 })
      .toBe(401);
    await run("clients", "delete", "north", clientId);
    expect((await call("GET", `/v1/api-clients/${clientId}`)).status).toBe(404);

    const { entries } = (await call("GET", "/v1/audit-log?client=command-line")).body;
    const by = { client: { id: "command-line", name: expect.stringMatching(/^command line \(.+\)$/) }, outcome: "OK" };
    expect(entries).toMatchObject([
      { ...by, rpc: "command-line/DeleteApiClient", resource: `apiClient/${clientId}` },
      { ...by, rpc: "command-line/DeleteApiKey", resource: `apiKey/${keyId}` },
      { ...by, rpc: "command-line/CreateApiKey", resource: `apiKey/${keyId}` },
      { ...by, rpc: "command-line/CreateApiClient", resource: `apiClient/${clientId}` },
      { ...by, rpc: "command-line/CreateTenant", resource: "tenant/north" },
    ]);
    expect((await call("GET", "/v1/audit-log?rpc=CreateApiKey")).body.totalCount).toBe("1");
  });

  test("what cannot be done says why, and changes nothing", async () => {
    const call = v1(server.url, { "service-api-key": keyIn(await run("tenants", "create", "south")) });
    const [client] = (await call("GET", "/v1/api-clients")).body.apiClients;
    const [key] = (await call("GET", `/v1/api-clients/${client.id}/keys`)).body.keys;
    const cases: [string[], RegExp][] = [
      [["tenants", "create", "south"], /exists already/],
      [["tenants", "create", ""], /1 to 255 characters/],
      [["clients", "list", "nowhere"], /no tenant found/],
      [["clients", "create", "south", "a\nb", "USER", "user"], /1 to 255 characters/],
      [["clients", "create", "south", "a", "USER"], /role/],
      [["clients", "create", "south", "a", "USER", "root"], /role must be one of/],
      [["clients", "create", "south", "a", "ROBOT"], /type must be one of/],
      [["clients", "create", "south", "a", "DATA_INGEST", "user"], /role/],
      [["clients", "delete", "south", client.id], /last manager key/],
      [["keys", "revoke", "south", client.id, key.id], /last manager key/],
      [["keys", "revoke", "south", client.id, "none"], /no API key found/],
      [["keys", "create", "south", "none"], /no API client found/],
      [["keys", "list", "south", "none"], /no API client found/],
      [["keys", "create", "south", client.id, "--expires", "tomorrow"], /--expires/],
      [["keys", "create", "south", client.id, "--expires", "2020-01-01T00:00:00Z"], /future/],
    ];
    for (const [args, text] of cases) await expect(run(...args), args.join(" ")).rejects.toThrow(text);
    expect((await call("GET", "/v1/audit-log")).body.totalCount).toBe("1");
  });

  test("such a refusal is one line with exit code 1; what is mistyped prints how it is called, with exit code 2", async () => {
    const refused = await belfry(["clients", "list", "nowhere"]);
    expect(refused).toEqual({ code: 1, out: "", err: expect.any(String) });
    expect(refused.err).toMatch(/^belfry: no tenant found for "nowhere"; tenants: .*"south".*\n$/);
    const mistyped = await belfry(["keys", "create", "a"]);
    expect(mistyped).toMatchObject({ code: 2, out: "" });
    expect(mistyped.err).toContain("npm run belfry -- keys create <tenant> <client id>");
    expect(await belfry(["tenats", "list"])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^belfry: there is no command "tenats"; did you mean "tenants"\?\n.*--help\n$/),
    });
    for (const args of [["clients"], ["keys", "list", "a", "b", "c"], ["tenants", "list", "--all"], ["tenants"]]) {
      expect(tenantCommand(args)).toBeUndefined();
    }
  });
});

describe("on the embedded database", () => {
  const dataDir = temporaryDir();
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));
  const env = { BELFRY_DATA_DIR: dataDir };

  test("commands work before a server has run, while one runs, and after it", async () => {
    const early = await belfry(["tenants", "list"], env);
    expect(early).toMatchObject({ code: 1, out: "" });
    expect(early.err).toMatch(/^belfry: the database lacks the migration [^\n]*\n$/);
    expect((await belfry(["migrate"], env)).code).toBe(0);
    expect((await belfry(["tenants", "list"], env)).code).toBe(0);

    const config = readConfig({ ...env, BELFRY_PORT: "0", BELFRY_PLAINTEXT: "1", BELFRY_SHUTDOWN_TIMEOUT: "100ms" });
    const own = await startServer(config, openLog("silent"));
    const call = v1(own.url, { "service-api-key": readFileSync(join(dataDir, "admin.key"), "utf8").trim() });
    expect((await call("GET", "/v1/audit-log")).body.entries).toMatchObject([
      {
        client: { id: "first-start", name: "first start" },
        rpc: "first-start/CreateTenant",
        resource: "tenant/default",
      },
    ]);
    const clientId = (await belfry(["clients", "create", "default", "agent", "DATA_INGEST"], env)).out.trim();
    expect((await call("GET", `/v1/api-clients/${clientId}`)).status).toBe(200);
    await own.stop();

    expect(keyIn((await belfry(["keys", "create", "default", clientId], env)).out)).not.toBe("");
  });
});
