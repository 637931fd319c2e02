import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { readConfig } from "../../src/config.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { envelope, protocols, raw, transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { accountsPath, groupsPath, idsPath } from "./cases.ts";

const database = await testDatabase();
const dataDir = mkdtempSync(join(tmpdir(), "belfry-server-"));
const logged: string[] = [];
const log = openLog("trace", { write: (line: string) => void logged.push(line) });
const config = readConfig({
  DATABASE_URL: database.url,
  BELFRY_DATA_DIR: dataDir,
  BELFRY_PORT: "0",
  BELFRY_PLAINTEXT: "1",
});
const server = await startServer(config, log);
afterAll(async () => {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
});
const tenant = await testTenant(database.sql);
const target = { url: server.url };

const answers: string[] = [];
let marks = 0;

/** A password with a mark of its own; all marks begin alike. */
const markText = "qzxvk";
const markNumber = "918273";
function mark(form: (text: string) => string = (text) => `A1!${text}`): string {
  marks += 1;
  return form(`${markText}${marks}`);
}

/** Sends a body as it is, and keeps the whole answer. */
async function send(method: string, path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  const all = { ...tenant.headers, "content-type": "application/json", ...headers };
  const answer = await raw(target, "2", { method, path, headers: all, body: [Buffer.from(body)] });
  answers.push(JSON.stringify([answer.headers, answer.trailers]), answer.body.toString("latin1"));
  return answer.status;
}

const rpc = "/belfry.users.v1.UserAccountService/CreateUserAccount";
const json = JSON.stringify;
const user = (password: unknown, more: object = {}) =>
  json({ user: { email: `m${marks}@example.com`, password, ...more } });

test("no password shows in an answer, a log line, an audit row or a table", async () => {
  // What succeeds.
  for (const protocol of protocols) {
    const accounts = createClient(UserAccountService, transport(target, protocol, tenant.headers));
    const email = `${protocol}@example.com`;
    const made = await accounts.createUserAccount({ user: { email, password: mark() } });
    const id = made.user?.id ?? "";
    const changed = await accounts.updateUserAccount({ id, password: mark() });
    const again = await accounts.updateUserAccount({ id, user: { password: mark() } });
    for (const answer of [made, changed, again, await accounts.getUserAccount({ id })])
      answers.push(json({ ...answer.user }, bigints));
    const refused = [
      accounts.createUserAccount({ user: { email, password: mark() } }),
      accounts.createUserAccount({ user: { email: "x@example.com", password: mark(), groups: ["no"] } }),
      accounts.createUserAccount({ user: { email: "x@example.com", password: mark((text) => text) } }),
      accounts.createUserAccount({ user: { email: "x@example.com", password: mark((text) => `Aaaa1!${text}`) } }),
      accounts.updateUserAccount({ id: "no", password: mark() }),
      accounts.updateUserAccount({ id, password: mark(), user: { password: mark() } }),
      accounts.updateUserAccount({ id, password: mark(), updateMask: { paths: ["passwords"] } }),
    ];
    for (const outcome of await Promise.allSettled(refused)) {
      expect(outcome.status).toBe("rejected");
      if (outcome.status === "rejected")
        answers.push(String(outcome.reason), json(ConnectError.from(outcome.reason).details, bigints));
    }
  }
  expect(await send("POST", accountsPath, user(mark()))).toBe(200);

  // Rules that are broken.
  expect(await send("POST", accountsPath, user(mark((text) => text)))).toBe(400);
  expect(await send("POST", accountsPath, user(mark((text) => `A!${text}${"x1".repeat(600)}`)))).toBe(400);
  expect(await send("POST", accountsPath, user(mark(), { email: "" }))).toBe(400);
  expect(await send("POST", accountsPath, user(mark(), { groups: ["none"] }))).toBe(400);

  // Wrong types, wrong places, broken texts; on /v1 and as Connect's JSON.
  const bodies = () => [
    user([mark()]),
    user({ value: mark() }),
    `{"user": {"email": "n@example.com", "password": ${markNumber}}}`,
    `{"user": {"email": "n@example.com", "password": -${markNumber}.5e3}}`,
    `{"user": {"email": "n@example.com", "password": ${mark()}}}`,
    `{"user": {"email": "n@example.com", "password": "${mark()}`,
    `{"user": {"email": "n@example.com", "password": "${mark()}\n"}}`,
    `{"user": {"email": "n@example.com", "password": "${mark()}\\x"}}`,
    `{"user": {"email": "n@example.com", "password": "${mark()}\\ud800"}}`,
    `{"user": {"email": "n@example.com", "password": "${mark()}", "password": "${mark()}"}}`,
    `{"user": {"email": "n@example.com", "password": "${mark()}"}} x`,
    json({ user: mark() }),
    json({ user: [{ password: mark() }] }),
    json({ email: "n@example.com", password: mark() }),
    user(mark(), { createdAt: mark() }),
    json(mark()),
  ];
  const placed = Buffer.from(user(mark()));
  placed[placed.indexOf(markText)] = 0xff;
  for (const body of [...bodies(), placed]) {
    expect(await send("POST", accountsPath, body)).toBe(400);
    expect(await send("PUT", `${accountsPath}/no`, body)).toBeGreaterThanOrEqual(400);
    await send("POST", rpc, body, { "connect-protocol-version": "1" });
  }
  for (const path of [idsPath, groupsPath]) expect(await send("POST", path, user(mark()))).toBe(400);
  for (const path of [accountsPath, `${accountsPath}/no`, `${groupsPath}/no`]) {
    expect(await send("PUT", `${path}?password=${mark()}`, "{}")).toBeGreaterThanOrEqual(400);
    expect(await send("POST", `${path}?user.password=${mark()}`, "{}")).toBeGreaterThanOrEqual(400);
  }

  // Bytes that are no message.
  const wire = Buffer.concat([Buffer.of(0x0a, 0x7f), Buffer.from(mark())]);
  const notUtf8 = Buffer.concat([Buffer.from(mark()), Buffer.of(0xff)]);
  const field = Buffer.concat([Buffer.of(0x4a, notUtf8.length), notUtf8]);
  for (const bytes of [wire, Buffer.concat([Buffer.of(0x0a, field.length), field])]) {
    await send("POST", rpc, bytes, { "content-type": "application/proto", "connect-protocol-version": "1" });
    await send("POST", rpc, envelope(bytes), { "content-type": "application/grpc", te: "trailers" });
    await send("POST", rpc, envelope(bytes), { "content-type": "application/grpc-web+proto" });
  }

  // Without a key, and with another one.
  for (const key of ["", `${tenant.headers["service-api-key"]}x`]) {
    expect(await send("POST", accountsPath, user(mark()), { "service-api-key": key })).toBe(401);
  }

  expect(marks).toBeGreaterThan(70);
  await expect.poll(() => logged.length, { timeout: 2000 }).toBeGreaterThan(80);
  await server.stop();
  const rows = await everyRow();
  expect(rows.filter((row) => row.includes("argon2id")).length).toBeGreaterThan(4);
  expect(rows.filter((row) => row.includes("CreateUserAccount")).length).toBeGreaterThan(40);
  for (const [where, texts] of Object.entries({ answers, logged, rows })) {
    expect(
      texts.filter((text) => text.includes(markText) || text.includes(markNumber)),
      where,
    ).toEqual([]);
  }
});

function bigints(_key: string, value: unknown) {
  return typeof value === "bigint" ? String(value) : value;
}

/** Every row of every table, as text. */
async function everyRow(): Promise<string[]> {
  const { sql } = database;
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`;
  const found = await Promise.all(
    tables.map(({ name }) => sql<{ row: string }[]>`select t::text as row from ${sql(name)} t`),
  );
  return found.flat().map(({ row }) => row);
}
