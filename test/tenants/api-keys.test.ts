import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { createClient, createKey } from "../../src/auth/create-tenant.ts";
import { newApiKey, parseKey } from "../../src/auth/key.ts";
import { lastUse } from "../../src/auth/key-last-used.ts";
import { keyVerifier } from "../../src/auth/key-verifier.ts";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql, url } = server.database;
let tenant: TestTenant;
let json: ReturnType<typeof v1>;

beforeAll(async () => {
  tenant = await testTenant(sql);
  json = v1(server.url, tenant.headers);
});

async function newClient(call = json, kind: object = { type: "USER", role: "user" }): Promise<string> {
  return (await call("POST", "/v1/api-clients", { name: "a client", ...kind })).body.apiClient.id;
}

const keysOf = (clientId: string) => `/v1/api-clients/${clientId}/keys`;
const search = (call: ReturnType<typeof v1>) => call("POST", "/v1/events:search", { query: {} });
const withKey = (secret: string, at = server.url) => v1(at, { "service-api-key": secret });

/** A second server on the same database. */
async function replica() {
  const env = {
    DATABASE_URL: url,
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
    BELFRY_SHUTDOWN_TIMEOUT: "100ms",
    BELFRY_MASTER_KEYS: masterKeys,
  };
  return await startServer(readConfig(env), openLog("silent"));
}

describe("a key", () => {
  test("is shown once, and works at once", async () => {
    const clientId = await newClient();
    const made = await json("POST", keysOf(clientId), { description: "for web-1" });
    expect(made).toMatchObject({
      status: 200,
      body: { key: { description: "for web-1", expireTime: null, lastUsedTime: null } },
    });
    const { key, secret } = made.body;
    expect(secret).toMatch(/^bf_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
    expect(secret).toContain(`bf_${key.prefix}_`);
    expect((await search(withKey(secret))).status).toBe(200);
    const listed = await json("GET", keysOf(clientId));
    expect(listed.body).toMatchObject({ keys: [{ id: key.id, prefix: key.prefix, description: "for web-1" }] });
    expect(JSON.stringify(listed.body)).not.toContain(secret.slice(16));
    const [stored] = await sql`select to_jsonb(k)::text as row from api_keys k where id = ${key.id}`;
    expect(stored?.row).not.toContain(secret.slice(16));
  });

  test("may have nothing said of it, with a body or without", async () => {
    const clientId = await newClient();
    expect((await json("POST", keysOf(clientId), {})).status).toBe(200);
    expect((await json("GET", keysOf(clientId))).body).toMatchObject({ totalCount: "1", nextPageToken: "" });
  });

  test("may end with the last moment that a time can have, and is listed", async () => {
    const clientId = await newClient();
    const expireTime = "9999-12-31T23:59:59.999Z";
    const made = await json("POST", keysOf(clientId), { expireTime: "9999-12-31T23:59:59.999999999Z" });
    expect(made.body.key).toMatchObject({ expireTime });
    expect((await json("GET", keysOf(clientId))).body).toMatchObject({ keys: [{ expireTime }] });
  });

  test("holds until it expires", async () => {
    const clientId = await newClient();
    const expireTime = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await json("POST", keysOf(clientId), { expireTime });
    expect(Date.parse(body.key.expireTime)).toBe(Date.parse(expireTime));
    const own = withKey(body.secret);
    expect((await search(own)).status).toBe(200);
    await sql`
      update api_keys set expires_ms = expires_ms - 3600000 where tenant_id = ${tenant.id} and client_id = ${clientId}`;
    await expect.poll(() => search(own)).toMatchObject({ status: 401, body: { code: 16 } });
    expect((await json("GET", keysOf(clientId))).body.totalCount).toBe("1");
  });

  test.each([
    ["a time that has passed", { expireTime: "2020-01-01T00:00:00Z" }, "expireTime"],
    ["no time", { expireTime: "tomorrow" }, "expireTime"],
    ["a description above 4 KiB", { description: "a".repeat(4097) }, "description"],
  ])("with %s is refused with code 3", async (_what, body, path) => {
    const answer = await json("POST", keysOf(await newClient()), body);
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(path) } });
  });
});

test("the pattern that is published for secret scanners finds keys, and its example is one in form", async () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/formats/api-key.md"), "utf8");
  const [pattern = "", example = ""] = page.slice(page.indexOf("## For secret scanners")).match(/^.*bf_.*$/gm) ?? [];
  const { secret } = (await json("POST", keysOf(await newClient()), {})).body;
  expect(`key="${secret}";`.match(new RegExp(pattern))?.[0]).toBe(secret);
  expect(`${secret}x`).not.toMatch(new RegExp(pattern));
  expect(parseKey(example)).toBe("EXAMPLE00000");
});

describe("at most 200 keys a client", () => {
  test("the 201st is refused with code 9, also when ten come at once", async () => {
    const clientId = await newClient();
    for (let i = 0; i < 195; i += 1) await createKey(sql, tenant.id, clientId, { description: "", expiresMs: null });
    const codes = await Promise.all(
      Array.from({ length: 10 }, async () => (await json("POST", keysOf(clientId), {})).body.code ?? 0),
    );
    expect(codes.sort()).toEqual([0, 0, 0, 0, 0, 9, 9, 9, 9, 9]);
    expect((await json("GET", keysOf(clientId))).body).toMatchObject({ totalCount: "200" });
    expect(await json("POST", keysOf(clientId), {})).toMatchObject({ status: 400, body: { code: 9 } });
    const { keys } = (await json("GET", keysOf(clientId))).body;
    await json("DELETE", `${keysOf(clientId)}/${keys[0].id}`);
    expect((await json("POST", keysOf(clientId), {})).status).toBe(200);
  });
});

describe("a revoked key", () => {
  test("is refused by every server, however busy it is", async () => {
    const second = await replica();
    try {
      const clientId = await newClient();
      const { key, secret } = (await json("POST", keysOf(clientId), {})).body;
      const both = [withKey(secret), withKey(secret, second.url)];
      for (const call of both) expect((await search(call)).status).toBe(200);
      expect((await json("DELETE", `${keysOf(clientId)}/${key.id}`)).body).toEqual({});
      for (const call of both)
        await expect.poll(() => search(call), { interval: 5 }).toMatchObject({ status: 401, body: { code: 16 } });
    } finally {
      await second.stop();
    }
  });

  test("of another client is not found", async () => {
    const [one, two] = [await newClient(), await newClient()];
    const { key } = (await json("POST", keysOf(one), {})).body;
    expect(await json("DELETE", `${keysOf(two)}/${key.id}`)).toMatchObject({ status: 404, body: { code: 5 } });
    expect((await json("GET", keysOf(one))).body.totalCount).toBe("1");
  });
});

describe("the last manager key of a tenant", () => {
  /** A tenant whose only key is the one of `call`. */
  async function lonely() {
    const own = await testTenant(sql);
    const call = v1(server.url, own.headers);
    const [client] = (await call("GET", "/v1/api-clients")).body.apiClients;
    const [key] = (await call("GET", keysOf(client.id))).body.keys;
    return { ...own, call, clientId: client.id as string, keyId: key.id as string };
  }

  test("stays, with code 9, whether it or its client is to go", async () => {
    const { call, clientId, keyId } = await lonely();
    for (const path of [`${keysOf(clientId)}/${keyId}`, `/v1/api-clients/${clientId}`]) {
      const answer = await call("DELETE", path);
      expect(answer).toMatchObject({ status: 400, body: { code: 9 } });
    }
    expect((await call("GET", keysOf(clientId))).body.totalCount).toBe("1");
  });

  test("is not saved by keys of other roles or types", async () => {
    const { call, id, clientId, keyId } = await lonely();
    for (const [type, role] of [["USER", "user"] as const, ["DATA_INGEST", null] as const]) {
      const other = await createClient(sql, id, { name: "other", type, role });
      const made = await createKey(sql, id, other.id, { description: "", expiresMs: null });
      expect((await call("DELETE", `${keysOf(other.id)}/${made.id}`)).status).toBe(200);
    }
    expect((await call("DELETE", `${keysOf(clientId)}/${keyId}`)).body.code).toBe(9);
  });

  test("is not saved by one that has expired, which may go itself", async () => {
    const { call, id, clientId, keyId } = await lonely();
    const expired = await createKey(sql, id, clientId, { description: "", expiresMs: BigInt(Date.now() - 1000) });
    expect((await call("DELETE", `${keysOf(clientId)}/${keyId}`)).body.code).toBe(9);
    expect((await call("DELETE", `${keysOf(clientId)}/${expired.id}`)).status).toBe(200);
  });

  test("may go when there is another one", async () => {
    const { call, clientId, keyId } = await lonely();
    const { secret } = (await call("POST", keysOf(clientId), {})).body;
    expect((await call("DELETE", `${keysOf(clientId)}/${keyId}`)).status).toBe(200);
    expect((await withKey(secret)("GET", keysOf(clientId))).body.totalCount).toBe("1");
  });

  test("stays also when all manager keys are revoked at once, on two servers", async () => {
    const second = await replica();
    try {
      for (let round = 0; round < 5; round += 1) {
        const { call, id, headers, clientId, keyId } = await lonely();
        const other = await createClient(sql, id, { name: "other", type: "USER", role: "manager" });
        const more = await createKey(sql, id, other.id, { description: "", expiresMs: null });
        const third = await createKey(sql, id, clientId, { description: "", expiresMs: null });
        const elsewhere = v1(second.url, headers);
        await elsewhere("GET", "/v1/api-clients");
        const answers = await Promise.all([
          call("DELETE", `${keysOf(clientId)}/${keyId}`),
          elsewhere("DELETE", `/v1/api-clients/${other.id}`),
          call("DELETE", `${keysOf(other.id)}/${more.id}`),
          elsewhere("DELETE", `${keysOf(clientId)}/${third.id}`),
        ]);
        expect(answers.map(({ body }) => body.code ?? 0).filter((code) => ![0, 5, 9].includes(code))).toEqual([]);
        const left = await sql`
          select 1 from api_keys k join api_clients c on c.tenant_id = k.tenant_id and c.id = k.client_id
          where k.tenant_id = ${id} and c.role = 'manager'`;
        expect(left).toHaveLength(1);
      }
    } finally {
      await second.stop();
    }
  });
});

describe("the time of the last use", () => {
  const lastUsed = async (clientId: string) => (await json("GET", keysOf(clientId))).body.keys[0].lastUsedTime;

  test("shows within some seconds, also of a call that was refused, and never before a use", async () => {
    const clientId = await newClient();
    const { secret } = (await json("POST", keysOf(clientId), {})).body;
    expect(await lastUsed(clientId)).toBeNull();
    expect((await withKey(secret)("GET", "/v1/api-clients")).status).toBe(403);
    await expect.poll(() => lastUsed(clientId)).not.toBeNull();
    expect(Math.abs(Date.parse(await lastUsed(clientId)) - Date.now())).toBeLessThan(10_000);
  });

  test("is noted for every accepted call, however fresh the key is, and for no other", async () => {
    const { secret } = (await json("POST", keysOf(await newClient()), {})).body;
    const uses: string[] = [];
    const { verify } = keyVerifier({ ...server.database.pool, onUse: ({ keyId }) => uses.push(keyId) });
    for (let i = 0; i < 5; i += 1) await verify(secret);
    expect(uses).toHaveLength(5);
    await Promise.resolve()
      .then(() => verify(newApiKey().text))
      .catch(() => {});
    expect(uses).toHaveLength(5);
  });

  test("is written once for many uses of many keys, a statement a tenant", async () => {
    const clientId = await newClient();
    const ids: string[] = [];
    for (let i = 0; i < 20; i += 1) {
      ids.push((await createKey(sql, tenant.id, clientId, { description: "", expiresMs: null })).id);
    }
    let statements = 0;
    const gate = {
      run: <T>(fn: () => Promise<T>) => {
        statements += 1;
        return fn();
      },
    };
    const [one, other] = [lastUse({ sql, gate }), lastUse({ sql, gate })];
    for (let i = 0; i < 1000; i += 1) {
      for (const keyId of ids) one.note({ tenantId: tenant.id, keyId });
    }
    await one.stop();
    expect(statements).toBe(1);
    const times = () => sql`
      select last_used_ms as ms from api_keys
      where tenant_id = ${tenant.id} and client_id = ${clientId} and last_used_ms is not null order by id`;
    const first = await times();
    expect(first).toHaveLength(20);
    for (const keyId of ids) one.note({ tenantId: tenant.id, keyId });
    await one.stop();
    expect(statements).toBe(1);
    // Another server, within the same minute: its statement changes nothing.
    for (const keyId of ids) other.note({ tenantId: tenant.id, keyId });
    await other.stop();
    expect(statements).toBe(2);
    expect(await times()).toEqual(first);
  });
});
