import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { credentialCommand } from "../../src/cli/credentials.ts";
import type { MasterKey } from "../../src/config/parsers.ts";
import { readConfig } from "../../src/config/settings.ts";
import { type Keyring, keyring } from "../../src/credentials/keyring.ts";
import { addMasterKey, checkMasterKeys } from "../../src/credentials/master-keys.ts";
import { rotateMasterKey } from "../../src/credentials/rotate.ts";
import { openSecrets, sealSecrets } from "../../src/credentials/secrets.ts";
import type { Db } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { transport } from "../support/clients.ts";
import { copyCluster } from "../support/cluster.ts";
import { type TestDatabase, temporaryDir, testDatabase } from "../support/database.ts";
import { compiled, program } from "../support/program.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const actor = { id: "test", name: "test" };
const text = () => randomBytes(32).toString("base64");
const [old, next] = [`old:${text()}`, `next:${text()}`];
const ring = (keys: string) => keyring(readConfig({ DATABASE_URL: "postgres://nowhere/", BELFRY_MASTER_KEYS: keys }));

function directory(): string {
  const dir = temporaryDir();
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function start(env: Record<string, string>) {
  const config = readConfig({ BELFRY_PORT: "0", BELFRY_PLAINTEXT: "1", BELFRY_SHUTDOWN_TIMEOUT: "100ms", ...env });
  const server = await startServer(config, openLog("silent"));
  onTestFinished(() => server.stop());
  return server;
}

/** Tenants that store, replace and list at one server without a pause, and what each credential's secret is. */
function traffic(db: Db, url: string) {
  const stored: { tenantId: string; id: string; token: string }[] = [];
  let failure: unknown;
  let going = true;

  async function oneTenant() {
    const tenant = await testTenant(db);
    const client = createClient(CredentialService, transport({ url }, "grpc", tenant.headers));
    const info = { name: "a", type: "teamChat" };
    const { info: made } = await client.createCredential({ info, secrets: { token: "first" } });
    const id = made?.id ?? "";
    const token = text();
    await client.replaceCredential({ id, info, secrets: { token } });
    await client.listCredentials({});
    stored.push({ tenantId: tenant.id, id, token });
  }
  async function run() {
    while (going) {
      await oneTenant().catch((error) => {
        failure = error;
        going = false;
      });
    }
  }
  const runs = [run(), run()];
  return {
    until: (count: number) => expect.poll(() => failure ?? stored.length >= count).toBe(true),
    async end() {
      going = false;
      await Promise.all(runs);
      if (failure !== undefined) throw failure;
      return stored;
    },
  };
}

async function expectAllUnder(
  db: Db,
  id: string,
  keys: Keyring,
  stored: Awaited<ReturnType<ReturnType<typeof traffic>["end"]>>,
) {
  expect((await db`select distinct master_key_id as id from data_keys`).map((row) => row.id)).toEqual([id]);
  expect([...(await db`select id, current from master_keys`)]).toEqual([{ id, current: true }]);
  expect(stored.length).toBeGreaterThan(5);
  for (const { tenantId, id, token } of stored) {
    expect((await openSecrets(db, tenantId, id, keys)).secrets).toEqual({ token });
  }
}

describe("while requests run", () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase();
  });

  test("on two servers a rotation fails none of them, and leaves nothing under the old key, also of later tenants", async () => {
    const { sql, url } = database;
    // Their settings still call the old key the newest one: the database says which is current.
    const env = { DATABASE_URL: url, BELFRY_DATA_DIR: directory(), BELFRY_MASTER_KEYS: `${old},${next}` };
    const servers = [await start(env), await start(env)];
    const flows = servers.map((server) => traffic(sql, server.url));
    for (const flow of flows) await flow.until(5);
    const before = await sql`select 1 from data_keys`;
    expect(await rotateMasterKey(sql, ring(`${next},${old}`), actor)).toMatchObject({ to: "next", retired: ["old"] });
    for (const flow of flows) await flow.until(before.length + 5);
    const stored = (await Promise.all(flows.map((flow) => flow.end()))).flat();
    await expectAllUnder(sql, "next", ring(next), stored);
  });

  test("servers with a key file take a key that was added after their start", async () => {
    const { sql, url } = database;
    const file = join(directory(), "keys");
    writeFileSync(file, `${old}\n`);
    const env = { DATABASE_URL: url, BELFRY_DATA_DIR: directory(), BELFRY_MASTER_KEYS_FILE: file };
    const server = await start(env);
    const flow = traffic(sql, server.url);
    await flow.until(5);
    writeFileSync(file, `${next}\n${old}\n`);
    const work = credentialCommand(["credentials", "rotate"], readConfig(env));
    expect(await work?.(sql)).toMatch(
      /master key next; data keys wrapped anew: \d+\nno longer needed: old, may be removed/,
    );
    await flow.until(15);
    await expectAllUnder(sql, "next", ring(next), await flow.end());
  });

  test("several rotations at once end under one key, and no key that is needed is lost", async () => {
    const { sql, url } = database;
    const dir = directory();
    const config = readConfig({ BELFRY_DATA_DIR: dir });
    const own = () => keyring(config);
    await checkMasterKeys(sql, own());
    const keys = readFileSync(join(dir, "master.key"), "utf8");
    const file = join(dir, "master.key");
    const server = await start({ DATABASE_URL: url, BELFRY_DATA_DIR: directory(), BELFRY_MASTER_KEYS_FILE: file });
    const flow = traffic(sql, server.url);
    await flow.until(10);
    const rotations = await Promise.all(Array.from({ length: 4 }, () => rotateMasterKey(sql, own(), actor)));
    await flow.until(15);
    const stored = await flow.end();
    const [current] = await sql`select id from master_keys where current`;
    expect(new Set(rotations.map(({ to }) => to)).size).toBe(4);
    await rotateMasterKey(sql, own(), actor);
    const [last] = await sql`select id from master_keys`;
    expect(last?.id).not.toBe(current?.id);
    await expectAllUnder(sql, last?.id, own(), stored);
    expect(readFileSync(file, "utf8")).toMatch(new RegExp(`^${last?.id}:[^\\n]+\\n$`));
    expect(readFileSync(file, "utf8")).not.toContain(keys.trim());
  });
});

describe("a rotation", () => {
  const owner = { kind: "credential", id: "c" };
  /** A tenant with a data key under the master key `old`. */
  async function sealed(db: Db) {
    const tenant = await testTenant(db);
    await transaction(db, (tx) => sealSecrets(tx, tenant.id, owner, { token: tenant.id }, ring(old)));
    return tenant;
  }
  const flip = (db: Db, tenantId: string) => db`
    update data_keys set wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) where tenant_id = ${tenantId}`;

  test("that cannot open a data key does all others, keeps the old key, and is finished by the next one", async () => {
    const { sql } = await testDatabase();
    await checkMasterKeys(sql, ring(old));
    const [, broken, third] = [await sealed(sql), await sealed(sql), await sealed(sql)];
    await flip(sql, broken.id);
    const both = ring(`${next},${old}`);
    await expect(rotateMasterKey(sql, both, actor)).rejects.toThrow(
      `2 data keys are wrapped anew, but not that of tenant "${broken.name}"`,
    );
    await expect(rotateMasterKey(sql, both, actor)).rejects.toThrow(/^0 data keys are wrapped anew/);
    await expect(checkMasterKeys(sql, ring(next))).rejects.toThrow(/master key old, which is not there/);
    await flip(sql, broken.id);
    expect(await rotateMasterKey(sql, both, actor)).toEqual({ to: "next", tenants: 1, retired: ["old"] });
    expect(await checkMasterKeys(sql, ring(next))).toBe(true);
    expect(await rotateMasterKey(sql, both, actor)).toEqual({ to: "next", tenants: 0, retired: [] });
    expect(
      (await sql`select resource from audit_entries where tenant_id = ${third.id}`).map((row) => row.resource),
    ).toEqual(["masterKey/next"]);
  });

  test("waits for a data key that is being made under the old key, and takes it along", async () => {
    const { sql } = await testDatabase();
    await checkMasterKeys(sql, ring(old));
    const tenant = await testTenant(sql);
    const { promise: made, resolve: isMade } = Promise.withResolvers<void>();
    const { promise: end, resolve: commit } = Promise.withResolvers<void>();
    const making = transaction(sql, async (tx) => {
      await sealSecrets(tx, tenant.id, owner, { token: "t" }, ring(old));
      isMade();
      await end;
    });
    await made;
    const rotation = rotateMasterKey(sql, ring(`${next},${old}`), actor);
    expect(await Promise.race([rotation, sleep(300)])).toBeUndefined();
    commit();
    await making;
    expect(await rotation).toEqual({ to: "next", tenants: 1, retired: ["old"] });
  });

  test("that is about to switch makes new data keys wait, which are then under the new key", async () => {
    const { sql } = await testDatabase();
    await checkMasterKeys(sql, ring(old));
    const tenant = await testTenant(sql);
    const sealing = await sql.begin(async (tx) => {
      await addMasterKey(tx, ring(next).all()[0] as MasterKey);
      await tx`update master_keys set current = false where current`;
      await tx`update master_keys set current = true where id = 'next'`;
      const started = transaction(sql, (other) =>
        sealSecrets(other, tenant.id, owner, { token: "t" }, ring(`${old},${next}`)),
      );
      expect(await Promise.race([started, sleep(300)])).toBeUndefined();
      return { started };
    });
    await sealing.started;
    expect([...(await sql`select master_key_id as id from data_keys`)]).toEqual([{ id: "next" }]);
  });

  test("may go back to a key that was retired", async () => {
    const { sql } = await testDatabase();
    await checkMasterKeys(sql, ring(old));
    await sealed(sql);
    await rotateMasterKey(sql, ring(`${next},${old}`), actor);
    expect(await rotateMasterKey(sql, ring(`${old},${next}`), actor)).toEqual({
      to: "old",
      tenants: 1,
      retired: ["next"],
    });
  });

  test("that fails as it forgets the old key leaves it in the file, so that servers still start", async () => {
    const { sql } = await testDatabase();
    const config = readConfig({ BELFRY_DATA_DIR: directory() });
    await checkMasterKeys(sql, keyring(config));
    await sql.unsafe(`
      create function no_delete() returns trigger language plpgsql as $$ begin raise 'the commit fails'; end $$;
      create constraint trigger no_delete after delete on master_keys deferrable initially deferred
        for each row execute function no_delete()`);
    await expect(rotateMasterKey(sql, keyring(config), actor)).rejects.toThrow("the commit fails");
    expect(await checkMasterKeys(sql, keyring(config))).toBe(true);
    await sql`drop function no_delete cascade`;
    expect(await rotateMasterKey(sql, keyring(config), actor)).toMatchObject({ to: "local-3" });
    expect(await checkMasterKeys(sql, keyring(config))).toBe(true);
  });

  test("needs a master key, and the one that is in use", async () => {
    const { sql } = await testDatabase();
    await expect(rotateMasterKey(sql, ring(""), actor)).rejects.toThrow(
      /there is no master key: set BELFRY_MASTER_KEYS/,
    );
    await checkMasterKeys(sql, ring(old));
    await expect(rotateMasterKey(sql, ring(next), actor)).rejects.toThrow(/master key old, which is not there/);
  });
});

describe("npm run belfry -- credentials rotate, on the embedded database", () => {
  /** Runs it to its end, as an operator does. */
  async function rotate(dataDir: string) {
    const { PATH = "", HOME = "" } = process.env;
    const env = { PATH, HOME, NODE_COMPILE_CACHE: compiled, BELFRY_DATA_DIR: dataDir };
    const child = spawn(process.execPath, [await program(), "credentials", "rotate"], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    child.stdout.on("data", (piece) => {
      out += piece;
    });
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    return { code, out };
  }

  test("makes another master key while the server runs and stores secrets, and when none runs", async () => {
    const dir = directory();
    copyCluster(dir);
    const file = join(dir, "master.key");
    const server = await start({ BELFRY_DATA_DIR: dir });
    const first = readFileSync(file, "utf8");
    const json = v1(server.url, { "service-api-key": readFileSync(join(dir, "admin.key"), "utf8").trim() });
    const body = { info: { name: "a", type: "teamChat" }, secrets: { token: "t" } };
    const statuses = new Set<number>();
    let going = true;
    const calls = (async () => {
      while (going) statuses.add((await json("POST", "/v1/credentials", body)).status);
    })();
    onTestFinished(() => {
      going = false;
      return calls;
    });
    await expect.poll(() => statuses.size).toBe(1);
    expect(await rotate(dir)).toEqual({
      code: 0,
      out: `all secrets are protected by the master key local-2; data keys wrapped anew: 1\nno longer needed: local-1, removed from ${file}\n`,
    });
    going = false;
    await calls;
    expect(await json("POST", "/v1/credentials", body)).toMatchObject({ status: 200 });
    expect([...statuses]).toEqual([200]);
    const second = readFileSync(file, "utf8");
    expect(second).toMatch(/^local-2:\S+\n$/);
    expect(second).not.toContain(first.trim().split(":")[1]);
    const { entries } = (await json("GET", "/v1/audit-log?rpc=RotateMasterKey")).body;
    expect(entries).toMatchObject([
      { rpc: "command-line/RotateMasterKey", resource: "masterKey/local-2", outcome: "OK" },
    ]);
    await server.stop();

    expect((await rotate(dir)).out).toContain("master key local-3; data keys wrapped anew: 1");
    const again = await start({ BELFRY_DATA_DIR: dir });
    const call = v1(again.url, { "service-api-key": readFileSync(join(dir, "admin.key"), "utf8").trim() });
    expect((await call("POST", "/v1/credentials", body)).status).toBe(200);
  });
});
