import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { createLink } from "../../src/auth/console-links.ts";
import { keyDigest } from "../../src/auth/key.ts";
import { newToken, parseToken } from "../../src/auth/session-token.ts";
import { consoleCommand } from "../../src/cli/console.ts";
import { readConfig } from "../../src/config/settings.ts";
import { transaction } from "../../src/db/transaction.ts";
import { firstLink } from "../../src/tenants/first-key.ts";
import { createTenantWithKey } from "../../src/tenants/tenant.ts";
import { rawHttp1, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";

const origin = "https://app.example.com";
const server = await testServer({
  BELFRY_CORS_ORIGINS: origin,
  BELFRY_PUBLIC_URL: "https://belfry.example.com",
  BELFRY_SESSION_IDLE_MAX: "6h",
  BELFRY_SESSION_AGE_MAX: "2d",
});
const { sql } = server.database;
const json = { "content-type": "application/json" };
const fromOwn = { "sec-fetch-site": "same-origin" };
const own = { ...json, ...fromOwn };

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: object;
}

/** One request with exactly these headers. */
async function send(path: string, { method = "POST", headers = {}, body }: Sent) {
  const bytes = body && Buffer.from(JSON.stringify(body));
  const length: Record<string, string> = bytes === undefined ? {} : { "content-length": String(bytes.byteLength) };
  const answer = await rawHttp1(server.target, {
    method,
    path,
    headers: { ...length, ...headers },
    body: bytes && [bytes],
  });
  const text = answer.body.toString();
  const whole = answer.headers["content-type"] === "application/json";
  return { status: answer.status, headers: answer.headers, body: whole ? JSON.parse(text) : text };
}

const logIn = (
  body: { key?: string | undefined; firstToken?: string | undefined },
  headers: Record<string, string> = own,
) => send("/v1/console-sessions", { headers, body });
/** Both halves of a session, as headers: the browser sends the cookie, its page the proof. */
interface Held extends Record<string, string> {
  cookie: string;
  "service-session-proof": string;
}
const current = (held: Record<string, string>, method = "GET", headers: Record<string, string> = fromOwn) =>
  send("/v1/console-sessions/current", { method, headers: { ...headers, ...held } });

/** Returns what a browser holds after this answer. */
const heldBy = ({ headers, body }: Awaited<ReturnType<typeof send>>): Held => ({
  cookie: (headers["set-cookie"]?.[0] ?? "").split(";", 1)[0] as string,
  "service-session-proof": body.pageProof ?? "",
});

/** A tenant, its manager's key, and a session of that. */
async function loggedIn() {
  const tenant = await testTenant(sql);
  const key = tenant.headers["service-api-key"] as string;
  const answer = await logIn({ key });
  expect(answer.status).toBe(200);
  return { tenant, key, answer, held: heldBy(answer), id: answer.body.session.id as string };
}

async function audit(headers: Record<string, string>) {
  const { body } = await send("/v1/audit-log", { method: "GET", headers });
  return body.entries;
}

describe("a key", () => {
  test("makes a session, which says whose it is and when it ends, and whose cookie no script can read", async () => {
    const { tenant, key, answer, held, id } = await loggedIn();
    const { cookie } = held;
    expect(answer.headers["set-cookie"]).toEqual([
      `${cookie}; Path=/; Max-Age=172800; Secure; HttpOnly; SameSite=Strict`,
    ]);
    expect(cookie).toMatch(/^__Host-belfry=bs_/);
    const { session } = answer.body;
    expect(session).toEqual({
      id,
      tenant: tenant.name,
      client: "USER manager",
      clientType: "USER",
      role: "manager",
      keyPrefix: key.split("_")[1],
      expireTime: expect.any(String),
    });
    expect(Math.abs(Date.parse(session.expireTime) - Date.now() - 6 * 3_600_000)).toBeLessThan(600_000);
    expect((await current(held)).body).toEqual({ session });
    const [entry] = await audit(tenant.headers);
    expect(entry).toMatchObject({
      resource: `session/${id}`,
      session: id,
      keyPrefix: session.keyPrefix,
      outcome: "OK",
    });
  });

  test("that is not valid makes none", async () => {
    for (const key of ["secret", `bf_${"0".repeat(12)}_${"0".repeat(49)}`]) {
      const answer = await logIn({ key });
      expect(answer).toMatchObject({ status: 401, body: { code: 16 } });
      expect(answer.headers["set-cookie"]).toBeUndefined();
      expect(JSON.stringify(answer.body)).not.toContain(key);
    }
    expect(await logIn({})).toMatchObject({ status: 400, body: { code: 3 } });
  });

  test("is read in a body of at most 16 KiB", async () => {
    expect(await logIn({ key: "x".repeat(16 * 1024) })).toMatchObject({ status: 413, body: { code: 8 } });
  });

  test("of any client does, and the session may do what the key may", async () => {
    const tenant = await testTenant(sql);
    const headers = await keyHeaders(sql, tenant.id, "USER", "read_only_user");
    const held = heldBy(await logIn({ key: headers["service-api-key"] }));
    const search = { headers: { ...own, ...held }, body: { query: {} } };
    expect((await send("/v1/events:search", search)).status).toBe(200);
    expect(await send("/v1/api-clients", { method: "GET", headers: { ...own, ...held } })).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining("read_only_user") },
    });
  });
});

describe("of the database", () => {
  test("only digests are there, of sessions and of links", async () => {
    const { tenant, held } = await loggedIn();
    const { token } = await transaction(sql, (tx) => createLink(tx, tenant.id));
    const rows = await sql`
      select to_jsonb(s)::text as row from console_sessions s where tenant_id = ${tenant.id}
      union all select to_jsonb(l)::text from console_links l where tenant_id = ${tenant.id}`;
    expect(rows).toHaveLength(2);
    const texts = rows.map(({ row }) => row).join();
    for (const secret of [held.cookie, held["service-session-proof"], token])
      expect(texts).not.toContain(secret.slice(-43));
  });
});

describe("a cookie counts", () => {
  const calls: [name: string, method: string, headers: Record<string, string>, status: number][] = [
    ["for a fetch of our page", "POST", own, 200],
    ["for Connect and gRPC-Web", "POST", { ...own, "content-type": "application/json; charset=utf-8" }, 200],
    ["where no site is named, for our host's origin", "POST", { ...json, origin: "https://belfry.test:8443" }, 200],
    ["where no site is named, for the public address", "POST", { ...json, origin: "https://belfry.example.com" }, 200],
    ["not for another origin", "POST", { ...json, origin }, 401],
    ["not for our host without TLS", "POST", { ...json, origin: "http://belfry.test:8443" }, 401],
    ["not without either", "POST", json, 401],
    ["not for another site, whatever its origin says", "POST", { ...own, "sec-fetch-site": "cross-site" }, 401],
    ["not for a neighbour under one domain", "POST", { ...own, "sec-fetch-site": "same-site" }, 401],
    ["not for an address that was typed", "POST", { ...own, "sec-fetch-site": "none" }, 401],
    ["not for a form", "POST", { ...own, "content-type": "application/x-www-form-urlencoded" }, 401],
    ["not for a form of plain text, as JSON may be hidden in", "POST", { ...own, "content-type": "text/plain" }, 401],
    ["not for a body without a type", "POST", { "sec-fetch-site": "same-origin" }, 401],
  ];
  test.each(calls)("%s", async (_name, method, headers, status) => {
    const { held } = await loggedIn();
    const sent = { ...headers, ...held, host: "belfry.test:8443" };
    const answer = await send("/v1/events:search", { method, headers: sent, body: { query: {} } });
    expect(answer.status).toBe(status);
    if (status === 401) expect(answer.body.message).toContain("this service's own pages");
    // Making and ending obey the same.
    const ended = await current(held, "DELETE", { ...headers, host: "belfry.test:8443" });
    if (headers["content-type"] === undefined) return;
    expect(ended.status).toBe(status);
    const { key } = await loggedIn();
    const made = await logIn({ key }, sent);
    expect(made.status).toBe(status === 200 ? 200 : 403);
  });

  test("only with the proof that the page keeps: a program on another port of the host gets the cookie alone", async () => {
    const [{ held, tenant, key }, other] = [await loggedIn(), await loggedIn()];
    const { cookie, "service-session-proof": proof } = held;
    const changed = `${proof.slice(0, -1)}${proof.endsWith("0") ? "1" : "0"}`;
    const without = [
      {},
      ...["", changed, `${proof}, ${proof}`, other.held["service-session-proof"], cookie.slice(-43)].map((text) => ({
        "service-session-proof": text,
      })),
    ];
    const everywhere = { host: "belfry.test:8443", origin: "https://belfry.test:8443", cookie };
    const calls: [path: string, method: string, body?: object][] = [
      ["/v1/events:search", "POST", { query: {} }],
      ["/v1/events:watch", "POST", { query: {} }],
      ["/v1/api-clients", "POST", { name: "theirs", type: "USER", role: "manager" }],
      ["/v1/audit-log", "GET"],
      ["/v1/console-sessions/current", "GET"],
      ["/v1/console-sessions/current", "DELETE"],
    ];
    for (const proofs of without)
      for (const [path, method, body] of calls) {
        const headers = { ...own, ...everywhere, ...proofs };
        const answer = await send(path, { method, headers, ...(body && { body }) });
        expect(answer, `${method} ${path}`).toMatchObject({ status: 401, body: { code: 16 } });
        expect(answer.body.message).toContain("log in again");
        expect(answer.headers["set-cookie"]).toBeUndefined();
      }
    // Who logs in with the cookie alone ends no session by it.
    expect((await logIn({ key }, { ...own, cookie })).status).toBe(200);
    expect((await current(held)).status).toBe(200);
    expect((await audit(tenant.headers)).map(({ outcome }: { outcome: string }) => outcome)).toEqual(["OK", "OK"]);
  });

  test("not as versions before stored it, whose digest was of the cookie alone", async () => {
    const { held, tenant } = await loggedIn();
    const token = held.cookie.slice(held.cookie.indexOf("=") + 1);
    await sql`update console_sessions set digest = ${keyDigest(token)} where tenant_id = ${tenant.id}`;
    await expect.poll(async () => (await current(held)).status).toBe(401);
    expect((await current({ cookie: held.cookie })).status).toBe(401);
  });

  test("only as a cookie: its token is no key", async () => {
    const { held } = await loggedIn();
    const { cookie, ...proof } = held;
    const token = cookie.slice(cookie.indexOf("=") + 1);
    const tries: Record<string, string>[] = [
      { "service-api-key": token },
      { "service-api-key": cookie },
      { authorization: `Bearer ${token}` },
    ];
    for (const headers of tries)
      expect(await send("/v1/events:search", { headers: { ...own, ...proof, ...headers }, body: {} })).toMatchObject({
        status: 401,
      });
  });

  test("not beside a key, which wins", async () => {
    const [ours, theirs] = [await loggedIn(), await testTenant(sql)];
    const { body } = await send("/v1/audit-log", {
      method: "GET",
      headers: { ...own, ...theirs.headers, ...ours.held },
    });
    expect(body.entries).toEqual([]);
    expect((await current(ours.held, "GET", { ...own, ...theirs.headers })).status).toBe(404);
  });

  test("for its own tenant alone", async () => {
    const [ours, theirs] = [await loggedIn(), await loggedIn()];
    const seen = await audit({ ...own, ...theirs.held });
    expect(seen.map(({ session }: { session: string }) => session)).toEqual([theirs.id]);
    expect(JSON.stringify(seen)).not.toContain(ours.id);
  });

  test("and the audit log names the session of each write", async () => {
    const { held, id, key } = await loggedIn();
    const headers = { ...own, ...held };
    await send("/v1/api-clients", { headers, body: { name: "made in the console", type: "DATA_INGEST" } });
    await send("/v1/api-clients/none", { method: "DELETE", headers });
    const [refused, made] = await audit(headers);
    const common = { session: id, keyPrefix: key.split("_")[1] };
    expect(made).toMatchObject({ ...common, outcome: "OK", rpc: expect.stringContaining("CreateApiClient") });
    expect(refused).toMatchObject({ ...common, outcome: "NOT_FOUND" });
  });
});

describe("other origins", () => {
  test("are never let in with credentials", async () => {
    const { key } = await loggedIn();
    const preflight = await send("/v1/console-sessions", {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type" },
    });
    const made = await logIn({ key }, { ...json, origin, "sec-fetch-site": "cross-site" });
    expect(made).toMatchObject({ status: 403, body: { code: 7 } });
    // Not the page's proof, either: it would come with a cookie alone.
    expect(preflight.headers["access-control-allow-headers"]).not.toContain("service-session-proof");
    for (const { headers } of [preflight, made]) {
      expect(headers["access-control-allow-origin"]).toBe(origin);
      expect(headers["access-control-allow-credentials"]).toBeUndefined();
      expect(headers["set-cookie"]).toBeUndefined();
    }
  });
});

describe("a forged cookie is refused", () => {
  test("whatever is changed in it", async () => {
    const { held, tenant } = await loggedIn();
    const { cookie, ...proof } = held;
    const other = await loggedIn();
    const good = cookie.slice(cookie.indexOf("=") + 1);
    const forged = newToken("bs", tenant.id).text;
    const theirs = other.held.cookie.slice(cookie.indexOf("=") + 1);
    const link = (await transaction(sql, (tx) => createLink(tx, tenant.id))).token;
    for (const token of ["", "x", good.slice(0, -1), `${good}0`, forged, link, good.slice(0, 26) + theirs.slice(26)])
      expect(await current({ cookie: `__Host-belfry=${token}`, ...proof }), token).toMatchObject({
        status: 401,
        body: { code: 16 },
      });
    expect((await current({ cookie: `a=b; __Host-belfry=${good}; c=d`, ...proof })).status).toBe(200);
    expect((await current({ cookie: `__Secure-belfry=${good}`, ...proof })).status).toBe(401);
    expect(parseToken("bs", good)?.tenantId).toBe(tenant.id);
  });
});

describe("a session ends", () => {
  test("by itself, at once, and its cookie is removed", async () => {
    const { held, tenant, id } = await loggedIn();
    const answer = await current(held, "DELETE");
    expect(answer).toMatchObject({ status: 200, body: {} });
    expect(answer.headers["set-cookie"]).toEqual([
      "__Host-belfry=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict",
    ]);
    expect(await current(held)).toMatchObject({
      status: 401,
      body: { message: expect.stringContaining("log in again") },
    });
    expect((await audit(tenant.headers))[0]).toMatchObject({ resource: `session/${id}`, session: id });
  });

  test("when its browser makes another one, so that no one goes on with a cookie that was planted", async () => {
    const { held, key } = await loggedIn();
    const next = await logIn({ key }, { ...own, ...held });
    expect(heldBy(next).cookie).not.toBe(held.cookie);
    expect((await current(held)).status).toBe(401);
    expect((await current(heldBy(next))).status).toBe(200);
    // What is none, is foreign or has ended does not keep one from logging in.
    expect((await logIn({ key }, { ...own, ...held })).status).toBe(200);
    expect((await logIn({ key }, { ...own, ...held, cookie: "__Host-belfry=planted" })).status).toBe(200);
  });

  test("with its key, also where a watch runs", async () => {
    const { held, tenant } = await loggedIn();
    const watch = createClient(EventQueryService, transport(server.target, "connect", { ...fromOwn, ...held }));
    const told = watch.watchEvents({ query: {} })[Symbol.asyncIterator]();
    await told.next();
    await sql`delete from api_keys where tenant_id = ${tenant.id}`;
    await expect(told.next()).rejects.toThrow("the session has ended");
    expect((await current(held)).status).toBe(401);
    expect(await sql`select 1 from console_sessions where tenant_id = ${tenant.id}`).toHaveLength(0);
  });

  const hour = 3_600_000n;
  const moments: [what: string, createdAgoMs: bigint, usedAgoMs: bigint, holds: boolean][] = [
    ["not before it was idle for so long", 20n * hour, 6n * hour - 60_000n, true],
    ["when it was", 20n * hour, 6n * hour, false],
    ["not before its longest time, while it is used", 48n * hour - 60_000n, 0n, true],
    ["after that, used or not", 48n * hour, 0n, false],
  ];
  test.each(moments)("%s", async (_what, createdAgoMs, usedAgoMs, holds) => {
    const tenant = await testTenant(sql);
    const held = heldBy(await logIn({ key: tenant.headers["service-api-key"] }));
    await sql`
      update console_sessions set created_ms = created_ms - ${createdAgoMs}, last_used_ms = last_used_ms - ${usedAgoMs}
      where tenant_id = ${tenant.id}`;
    expect((await current(held)).status).toBe(holds ? 200 : 401);
  });

  test("at the moment when its key expires", async () => {
    const { held, tenant } = await loggedIn();
    const soon = BigInt(Date.now()) + 3_600_000n;
    await sql`update api_keys set expires_ms = ${soon} where tenant_id = ${tenant.id}`;
    expect(Date.parse((await current(held)).body.session.expireTime)).toBe(Number(soon));
    await sql`update api_keys set expires_ms = ${BigInt(Date.now())} where tenant_id = ${tenant.id}`;
    await expect.poll(async () => (await current(held)).status).toBe(401);
  });

  test("and its uses move its end, by what is stored once a minute", async () => {
    const { held, tenant } = await loggedIn();
    await sql`update console_sessions set last_used_ms = last_used_ms - ${hour} where tenant_id = ${tenant.id}`;
    const leftMs = async () => Date.parse((await current(held)).body.session.expireTime) - Date.now();
    await expect.poll(leftMs).toBeGreaterThan(5.5 * 3_600_000);
  });

  test("when its key has a hundred newer ones", async () => {
    const { held, key, tenant } = await loggedIn();
    await sql`
      insert into console_sessions (tenant_id, id, key_id, digest, created_ms, last_used_ms)
      select tenant_id, n::text, key_id, digest, created_ms + n, last_used_ms
      from console_sessions, generate_series(1, 99) n where tenant_id = ${tenant.id}`;
    expect((await logIn({ key })).status).toBe(200);
    expect((await sql`select 1 from console_sessions where tenant_id = ${tenant.id}`).length).toBe(100);
    await expect.poll(async () => (await current(held)).status).toBe(401);
  });
});

describe("a link", () => {
  const link = (tenantId: string, prefix?: string) => transaction(sql, (tx) => createLink(tx, tenantId, prefix));

  test("makes a session of the oldest manager key, once", async () => {
    const tenant = await testTenant(sql);
    await keyHeaders(sql, tenant.id, "USER", "manager");
    const { token } = await link(tenant.id);
    const answers = await Promise.all([logIn({ firstToken: token }), logIn({ firstToken: token })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
    const made = answers.find(({ status }) => status === 200);
    expect(made?.body.session).toMatchObject({
      keyPrefix: tenant.headers["service-api-key"]?.split("_")[1],
      role: "manager",
    });
    expect((await audit(tenant.headers))[0]).toMatchObject({ resource: `session/${made?.body.session.id}` });
    expect((await logIn({ firstToken: token })).body.message).toContain("it holds once, for 30 minutes");
  });

  test("of another key makes one of that", async () => {
    const tenant = await testTenant(sql);
    const prefix = (await keyHeaders(sql, tenant.id, "USER", "user"))["service-api-key"]?.split("_")[1] as string;
    const { token } = await link(tenant.id, prefix);
    expect((await logIn({ firstToken: token })).body.session).toMatchObject({ keyPrefix: prefix, role: "user" });
  });

  test("is printed by the command `console`, for the key that it names", async () => {
    const tenant = await testTenant(sql);
    const prefix = tenant.headers["service-api-key"]?.split("_")[1] as string;
    const config = readConfig({ BELFRY_PUBLIC_URL: "https://belfry.example.com" });
    for (const more of [[], ["--key", prefix], [`--key=bf_${prefix}`]]) {
      const printed = await consoleCommand(["console", "--tenant", tenant.name, ...more], config)?.(sql);
      const [, firstToken] = /^https:\/\/belfry\.example\.com\/console\/#first=(\S+)\n$/.exec(printed ?? "") ?? [];
      expect((await logIn({ firstToken })).body.session).toMatchObject({ tenant: tenant.name, keyPrefix: prefix });
    }
    const made = (await audit(tenant.headers)).filter(({ rpc }: { rpc: string }) => rpc.includes("CreateConsoleLink"));
    expect(made).toHaveLength(3);
    expect(made[0]).toMatchObject({ client: { id: "command-line" }, resource: expect.stringMatching(/^apiKey\/./) });
    await expect(
      consoleCommand(["console", "--tenant", tenant.name, "--key", "none"], config)?.(sql),
    ).rejects.toMatchObject({ code: 5 });
    expect(consoleCommand(["console", "--other"], config)).toBeUndefined();
  });

  test("is made at a start until a session was made, of the tenant `default`", async () => {
    expect(await server.withDatabase(firstLink)).toBeUndefined();
    const tenant = await transaction(sql, (tx) => createTenantWithKey(tx, "default", { id: "test", name: "test" }));
    const firstToken = await server.withDatabase(firstLink);
    expect(await server.withDatabase(firstLink)).toMatch(/^bl_/);
    expect((await logIn({ firstToken })).body.session).toMatchObject({ tenant: "default", role: "manager" });
    expect(await server.withDatabase(firstLink)).toBeUndefined();
    await sql`delete from console_sessions where tenant_id = ${tenant.id}`;
    expect(await server.withDatabase(firstLink)).toBeUndefined();
  });

  test("does not after 30 minutes, with another secret, or without its key", async () => {
    const tenant = await testTenant(sql);
    const { token } = await link(tenant.id);
    const [{ leftMs } = { leftMs: 0 }] = await sql<{ leftMs: number }[]>`
      select (expires_ms - (extract(epoch from clock_timestamp()) * 1000))::float8 as "leftMs"
      from console_links where tenant_id = ${tenant.id}`;
    expect(Math.abs(leftMs - 1_800_000)).toBeLessThan(120_000);
    expect((await logIn({ firstToken: newToken("bl", tenant.id).text })).status).toBe(401);
    await sql`update console_links set expires_ms = ${BigInt(Date.now())} where tenant_id = ${tenant.id}`;
    expect((await logIn({ firstToken: token })).status).toBe(401);
    const next = await link(tenant.id);
    await sql`delete from api_keys where tenant_id = ${tenant.id}`;
    expect((await logIn({ firstToken: next.token })).status).toBe(401);
    await expect(link(tenant.id)).rejects.toMatchObject({ code: 9 });
  });
});
