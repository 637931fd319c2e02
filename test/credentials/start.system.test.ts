import { type KeyObject, randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { readMasterKeys } from "../../src/config/parsers.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { checkMasterKeys } from "../../src/credentials/master-keys.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const text = () => randomBytes(32).toString("base64");
const one = `one:${text()}`;
const two = `two:${text()}`;

function directory(): string {
  const dir = temporaryDir();
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

describe("the settings", () => {
  test.each([
    ["no id", text()],
    ["an empty id", `:${text()}`],
    ["a short key", `a:${randomBytes(31).toString("base64")}`],
    ["a long key", `a:${randomBytes(33).toString("base64")}`],
    ["no base64", `a:${"!".repeat(43)}`],
    ["one id twice", `${one},one:${text()}`],
  ])("refuse %s, and do not quote it", (_what, keys) => {
    const read = () => readConfig({ BELFRY_MASTER_KEYS: keys });
    expect(read).toThrow(/^BELFRY_MASTER_KEYS must/);
    expect(read).not.toThrow(keys.slice(-20));
  });

  test("take several, by commas and lines, and none", () => {
    const ids = (keys: string) => readConfig({ BELFRY_MASTER_KEYS: keys }).masterKeys.map(({ id }) => id);
    expect(ids(`${one},${two}`)).toEqual(["one", "two"]);
    expect(ids(`${one}\n${two}\n`)).toEqual(["one", "two"]);
    expect(ids("")).toEqual([]);
  });
});

describe("with DATABASE_URL", () => {
  async function start(env: Record<string, string>, url: string, lines: string[] = []) {
    const config = readConfig({
      DATABASE_URL: url,
      BELFRY_DATA_DIR: directory(),
      BELFRY_PORT: "0",
      BELFRY_PLAINTEXT: "1",
      BELFRY_SHUTDOWN_TIMEOUT: "100ms",
      ...env,
    });
    const server = await startServer(config, openLog("warn", { write: (line: string) => void lines.push(line) }));
    onTestFinished(() => server.stop());
    return { ...server, dataDir: config.dataDir };
  }
  const teamChat = { info: { name: "a", type: "teamChat" }, secrets: { token: "t" } };

  test("and no master key the server starts and says so; credentials are stored without secrets only", async () => {
    const { sql, url } = await testDatabase();
    const lines: string[] = [];
    const server = await start({}, url, lines);
    expect(lines.join("")).toContain("no master key");
    expect(existsSync(join(server.dataDir, "master.key"))).toBe(false);
    const { headers } = await testTenant(sql);
    const json = v1(server.url, headers);
    const refused = await json("POST", "/v1/credentials", teamChat);
    expect(refused).toMatchObject({ status: 400, body: { code: 9 } });
    expect(refused.body.message).toContain("BELFRY_MASTER_KEYS");
    const grpc = createClient(CredentialService, transport({ url: server.url }, "grpc", headers));
    await expect(grpc.createCredential(teamChat)).rejects.toMatchObject({ code: 9 });
    const { body } = await json("POST", "/v1/credentials", { info: teamChat.info });
    expect((await json("GET", "/v1/credentials")).body.totalCount).toBe("1");
    expect((await json("PUT", `/v1/credentials/${body.info.id}`, teamChat)).body.code).toBe(9);
    expect((await json("DELETE", `/v1/credentials/${body.info.id}`)).status).toBe(200);
  });

  test("a master key that is in use and is missing, or is another one, stops the start with one line", async () => {
    const { sql, url } = await testDatabase();
    await start({ BELFRY_MASTER_KEYS: one }, url);
    await expect(start({}, url)).rejects.toThrow(
      /protected by the master key one, which is not there: put it into BELFRY/,
    );
    await expect(start({ BELFRY_MASTER_KEYS: two }, url)).rejects.toThrow(/master key one, which is not there/);
    await expect(start({ BELFRY_MASTER_KEYS: `one:${text()}` }, url)).rejects.toThrow(/master key one is not the one/);
    await start({ BELFRY_MASTER_KEYS: `${two},${one}` }, url);
    expect([...(await sql`select id, current from master_keys order by id`)]).toEqual([{ id: "one", current: true }]);
  });

  test("servers that start at once agree on one master key", async () => {
    const { sql, url } = await testDatabase();
    const config = (keys: string) => readConfig({ DATABASE_URL: url, BELFRY_MASTER_KEYS: keys });
    const both = [`${one},${two}`, `${two},${one}`];
    await Promise.all([...both, ...both, ...both].map((keys) => checkMasterKeys(sql, keyring(config(keys)))));
    expect(await sql`select 1 from master_keys where current`).toHaveLength(1);
  });

  test("a key file gives keys too; one that is malformed, missing or no file stops the start", async () => {
    const { url } = await testDatabase();
    const file = join(directory(), "keys");
    writeFileSync(file, `${one}\n${two}\n`);
    const { url: at } = await start({ BELFRY_MASTER_KEYS_FILE: file }, url);
    expect(at).toContain("http");
    writeFileSync(file, `${one}\nhunter2\n`);
    await expect(start({ BELFRY_MASTER_KEYS_FILE: file }, url)).rejects.toThrow(/^the master key file .*keys must be/);
    await expect(start({ BELFRY_MASTER_KEYS_FILE: file }, url)).rejects.not.toThrow(/hunter2/);
    await expect(start({ BELFRY_MASTER_KEYS_FILE: directory() }, url)).rejects.toThrow(
      /cannot read the master key file/,
    );
  });
});

describe("on the embedded database", () => {
  const ringOf = (dataDir: string) => keyring(readConfig({ BELFRY_DATA_DIR: dataDir }));

  test("a master key is made once, in a file that no one else can read, whatever the umask", async () => {
    const { sql } = await testDatabase();
    const dir = directory();
    const before = process.umask(0);
    try {
      await Promise.all(Array.from({ length: 8 }, () => checkMasterKeys(sql, ringOf(dir))));
    } finally {
      process.umask(before);
    }
    const file = join(dir, "master.key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const made = readFileSync(file, "utf8");
    expect(made).toMatch(/^local-1:[A-Za-z0-9+/]{43}=\n$/);
    await checkMasterKeys(sql, ringOf(dir));
    expect(readFileSync(file, "utf8")).toBe(made);
    expect([...(await sql`select id, current from master_keys`)]).toEqual([{ id: "local-1", current: true }]);
  });

  test("a file that is gone is asked for, and not made again", async () => {
    const { sql } = await testDatabase();
    const dir = directory();
    await checkMasterKeys(sql, ringOf(dir));
    rmSync(join(dir, "master.key"));
    await expect(checkMasterKeys(sql, ringOf(dir))).rejects.toThrow(/put it back into .*master\.key/);
    expect(existsSync(join(dir, "master.key"))).toBe(false);
  });

  test("a key that a rotation has taken out of the file is remembered by those who had it", async () => {
    const dir = directory();
    const file = join(dir, "master.key");
    writeFileSync(file, `${one}\n`);
    const ring = ringOf(dir);
    writeFileSync(file, `${two}\n`);
    expect(ring.find("two")?.equals(readMasterKeys(two)[0]?.key as KeyObject)).toBe(true);
    expect(ring.find("one")?.equals(readMasterKeys(one)[0]?.key as KeyObject)).toBe(true);
    expect(ring.all().map(({ id }) => id)).toEqual(["two"]);
  });

  test("the file's key given by a setting is the same key", async () => {
    const { sql } = await testDatabase();
    const dir = directory();
    await checkMasterKeys(sql, ringOf(dir));
    const keys = readFileSync(join(dir, "master.key"), "utf8");
    const elsewhere = keyring(readConfig({ DATABASE_URL: "postgres://nowhere/", BELFRY_MASTER_KEYS: keys }));
    expect(await checkMasterKeys(sql, elsewhere)).toBe(true);
  });
});
