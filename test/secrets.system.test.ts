import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { afterAll, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { createClient, createKey } from "../src/auth/create-tenant.ts";
import { readConfig } from "../src/config/settings.ts";
import { keyring } from "../src/credentials/keyring.ts";
import { openSecrets } from "../src/credentials/secrets.ts";
import { connect } from "../src/db/connect.ts";
import { openLog } from "../src/rpc/log.ts";
import { startServer } from "../src/server.ts";
import { allMethods } from "./support/calls.ts";
import { envelope, openHttp2 } from "./support/clients.ts";
import { clusterDir, poolOptions } from "./support/database.ts";
import { everyFile, everyRow, newMarks } from "./support/marks.ts";
import { httpReceiver } from "./support/receivers.ts";

/*
 * The whole server on an embedded database, at the most talkative log level: marks are sent as secrets, passwords and keys
 * on every way in, right and wrong ones. None may be found afterwards: in an answer, a log line, a row or a file.
 */
const dataDir = clusterDir();
/** Repeats all that it gets, in its answers to destinations. */
const echo = await httpReceiver();
const lines: string[] = [];
const config = {
  ...readConfig({
    BELFRY_DATA_DIR: dataDir,
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
    BELFRY_SHUTDOWN_TIMEOUT: "100ms",
    BELFRY_LOG_LEVEL: "trace",
    BELFRY_OUTBOUND_ALLOW: "127.0.0.1",
    BELFRY_TEAM_CHAT_URL: echo.url,
    BELFRY_INCIDENT_PAGING_URL: echo.url,
  }),
  lockTimeoutMs: 200,
};
const server = await startServer(config, openLog(config.logLevel, { write: (line: string) => void lines.push(line) }));
const database = () => readFileSync(join(dataDir, "database.url"), "utf8").trim();
const pool = connect(database(), poolOptions());
afterAll(async () => {
  await pool.close();
  await server.stop();
  await echo[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});
const { sql } = pool;
const connection = openHttp2({ url: server.url });
const manager = { "service-api-key": readFileSync(join(dataDir, "admin.key"), "utf8").trim() };

const marks = newMarks();
const mark = () => marks.next();
const answers: string[] = [];

interface Sent {
  method?: string;
  path: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

/** Sends it as it is, and keeps the whole answer. */
async function send({ method = "POST", path, body, headers = {} }: Sent) {
  const answer = await connection.send({
    method,
    path,
    headers: { ...manager, "content-type": "application/json", ...headers },
    body: body === undefined ? undefined : [Buffer.from(body)],
  });
  const text = answer.body.toString("latin1");
  answers.push(`${method} ${path.split("?", 1)}: ${JSON.stringify([answer.headers, answer.trailers])} ${text}`);
  return { status: answer.status, text };
}

/** A body on every way to one RPC: /v1, Connect's JSON and binary, gRPC and gRPC-Web in both. Each gets marks of its own. */
async function everyWay(rpc: DescMethod, method: string, path: string, body: () => string) {
  const status = (await send({ method, path, body: body() })).status;
  const at = `/${rpc.parent.typeName}/${rpc.name}`;
  const text = body();
  await send({ path: at, body: text, headers: { "connect-protocol-version": "1" } });
  for (const type of ["application/grpc+json", "application/grpc-web+json"])
    await send({ path: at, body: envelope(Buffer.from(body())), headers: { "content-type": type, te: "trailers" } });
  let message: Uint8Array;
  try {
    message = toBinary(rpc.input, fromJson(rpc.input, JSON.parse(text)));
  } catch {
    message = Buffer.concat([Buffer.of(10, 120), Buffer.from(text)]); // a field that says it is longer than it is
  }
  await send({ path: at, body: Buffer.from(message), headers: { "content-type": "application/proto" } });
  for (const type of ["application/grpc", "application/grpc-web"])
    await send({ path: at, body: envelope(message), headers: { "content-type": type, te: "trailers" } });
  return status;
}

/** Texts in which a secret stands where it should, but is wrong, or stands where it should not. */
const wrongValues: (() => string)[] = [
  () => marks.next("number"),
  () => `-${marks.next("number")}.5e3`,
  () => `["${mark()}"]`,
  () => `{"value":"${mark()}"}`,
  () => mark(),
  () => `"${mark()}`,
  () => `"a"${mark()}"`,
  () => `"${mark()}\\q"`,
  () => `"${mark()}\\ud800"`,
  () => `"${mark()}\n"`,
  () => `"${mark()}" "${mark()}"`,
  () => `"${mark()}", "token": "${mark()}", "password": "${mark()}"`,
  () => `"${mark()}${"x".repeat(8192)}"`,
];

const credentials = "/v1/credentials";
const accounts = "/v1/user-mgmt/end-user-accounts";
const { createCredential, replaceCredential } = CredentialService.method;
const { createUserAccount, updateUserAccount } = UserAccountService.method;
const destinations = "/v1/notification/destinations";
const { createDestination, replaceDestination } = DestinationService.method;
const credential = (secrets: string, info = `{"name":"chat","type":"teamChat"}`) =>
  `{"info":${info},"secrets":${secrets}}`;
const token = () => `{"token":"${mark()}"}`;
let people = 0;
const account = (password: string) => {
  people += 1;
  return `{"user":{"email":"p${people}@example.com","password":${password}}}`;
};
const password = () => `"A1!${mark()}"`;

let targets = 0;
const destination = (type: string, name = `target ${targets++}`) =>
  JSON.stringify({ name }).replace("}", `,"type":${type}}`);
const address = "https://example.com";
/** A destination of each kind that has secrets, as it is right. */
const kinds: (() => object)[] = [
  () => ({ officeChat: { webhookUrl: `${address}/${mark()}`, text: "t" } }),
  () => ({ incidentPaging: { integrationKey: mark() } }),
  () => ({ itsm: { baseUrl: address, basic: { username: "u", password: mark() } } }),
  () => ({
    itsm: {
      baseUrl: address,
      oauth: {
        password: mark(),
        clientId: "i",
        clientSecret: mark(),
        tokenUrl: address,
        authUrl: address,
        refreshToken: mark(),
      },
    },
  }),
  () => ({ teamChat: { channel: "a", token: mark() } }),
  () => ({ webhook: { url: address, signingSecret: `whsec_${mark()}${mark()}`, headers: { "x-key": mark() } } }),
  () => ({ webhook: { url: `${address}/hooks/${mark()}` } }),
];

async function sendDestinations() {
  for (const kind of kinds) {
    const type = () => JSON.stringify(kind());
    const name = `target ${targets}`;
    expect(await everyWay(createDestination, "POST", destinations, () => destination(type()))).toBe(200);
    const own = `${destinations}/${encodeURIComponent(name)}`;
    expect(await everyWay(replaceDestination, "PUT", own, () => destination(type(), name))).toBe(200);
  }
  for (const value of wrongValues) {
    const chat = () => destination(`{"teamChat":{"channel":"a","token":${value()}}}`);
    expect(await everyWay(createDestination, "POST", destinations, chat)).toBe(400);
    const hook = () => destination(`{"webhook":{"url":"${address}","headers":{"x-key":${value()}}}}`);
    await everyWay(createDestination, "POST", destinations, hook);
  }
  const unknown = () => destination(JSON.stringify({ itsm: { basic: { username: mark(), password: mark() } } }));
  expect(await everyWay(createDestination, "POST", destinations, unknown)).toBe(400);
  expect(
    await everyWay(replaceDestination, "PUT", `${destinations}/none`, () =>
      destination(JSON.stringify(kinds[0]?.()), "none"),
    ),
  ).toBe(404);
}

async function sendSecrets() {
  expect(await everyWay(createCredential, "POST", credentials, () => credential(token()))).toBe(200);
  const made = JSON.parse((await send({ path: credentials, body: credential(token()) })).text);
  const own = `${credentials}/${made.info.id}`;
  expect(await everyWay(replaceCredential, "PUT", own, () => credential(token()))).toBe(200);
  expect(await everyWay(createUserAccount, "POST", accounts, () => account(password()))).toBe(200);
  const user = JSON.parse((await send({ path: accounts, body: account(password()) })).text);
  const person = `${accounts}/${user.user.id}`;
  expect(await everyWay(updateUserAccount, "PUT", person, () => `{"password":${password()}}`)).toBe(200);

  for (const value of wrongValues) {
    expect(await everyWay(createCredential, "POST", credentials, () => credential(`{"token":${value()}}`))).toBe(500);
    expect(await everyWay(replaceCredential, "PUT", own, () => credential(`{"token":${value()}}`))).toBe(500);
    expect(await everyWay(createCredential, "POST", credentials, () => credential(value()))).toBe(500);
    expect(await everyWay(createUserAccount, "POST", accounts, () => account(value()))).toBe(400);
    expect(await everyWay(updateUserAccount, "PUT", person, () => `{"password":${value()}}`)).toBe(400);
  }
  expect(await everyWay(createCredential, "POST", credentials, () => credential(`{"token":"${mark()}\\u0000"}`))).toBe(
    500,
  );
  const refused: [DescMethod, string, string, () => string, number][] = [
    [createCredential, "POST", credentials, () => credential(`{"routingKey":"${mark()}"}`), 500],
    [createCredential, "POST", credentials, () => credential(token(), `{"name":"a","type":"carrierPigeon"}`), 500],
    [createCredential, "POST", credentials, () => credential(token(), `{"type":"teamChat"}`), 500],
    [createCredential, "POST", credentials, () => `${credential(token())} ${mark()}`, 500],
    [createCredential, "POST", credentials, () => `"${mark()}"`, 500],
    [replaceCredential, "PUT", `${credentials}/none`, () => credential(token()), 404],
    [createUserAccount, "POST", accounts, () => account(`"${mark()}aaa"`), 400],
    [updateUserAccount, "PUT", `${accounts}/none`, () => `{"password":${password()}}`, 404],
    [updateUserAccount, "PUT", person, () => `{"password":${password()},"user":{"password":${password()}}}`, 400],
  ];
  for (const [rpc, method, path, body, status] of refused) {
    expect(await everyWay(rpc, method, path, body), body()).toBe(status);
  }
}

/** Destinations that are tested, at a receiver that takes them, or not, and repeats what it got. */
async function testDestinations() {
  const path = `${destinations}:test`;
  const { testDestination } = DestinationService.method;
  const wrong: (() => object)[] = [
    () => ({ officeChat: { webhookUrl: mark(), text: "x" } }),
    () => ({ teamChat: { channel: "#ops", token: mark() } }),
    () => ({ webhook: { url: echo.url, signingSecret: mark() } }),
    () => ({ webhook: { url: echo.url, headers: { host: mark() } } }),
    () => ({ webhook: { url: `https://user:${mark()}@example.com/` } }),
    () => ({ teamChat: { channel: "ops", token: [mark()] } }),
  ];
  for (const status of [200, 400, 401, 500]) {
    echo.answer((request, response) => {
      const got = JSON.stringify(request);
      response.writeHead(status).end(`${got} ${Buffer.from(got).toString("base64")} ${encodeURIComponent(got)}`);
    });
    for (const kind of [...kinds, ...wrong]) {
      const own = () => destination(JSON.stringify(kind()).replaceAll(address, echo.url));
      await send({ path, body: own() });
      // Over /v1 the body is the destination itself: there this one is wrong.
      await everyWay(testDestination, "POST", path, () => `{"destination":${own()}}`);
    }
  }
  expect(echo.received.length).toBeGreaterThan(100);
}

/** Where it is not the message that is wrong. */
async function sendElsewhere() {
  const body = () => credential(token());
  const gzip = { "content-encoding": "gzip" };
  const calls: Sent[] = [
    { path: credentials, body: body(), headers: { "content-type": "text/plain" } },
    { path: credentials, body: body(), headers: gzip },
    { path: credentials, body: gzipSync(body()), headers: gzip },
    { path: credentials, body: Buffer.concat([Buffer.from(body()), Buffer.of(0xff)]) },
    { path: credentials, body: body().padEnd(5 << 20, " ") },
    { path: credentials, body: body(), headers: { "service-api-key": "" } },
    { path: credentials, body: body(), headers: { "service-api-key": mark() } },
    { method: "PATCH", path: credentials, body: body() },
    { path: "/v1/nowhere", body: body() },
    { path: `${credentials}?secrets.token=${mark()}`, body: "{}" },
    { method: "GET", path: `${credentials}?token=${mark()}` },
    { method: "GET", path: `${credentials}?pageToken=${mark()}` },
    { method: "PUT", path: `${accounts}/none?user.password=${mark()}`, body: "{}" },
    { path: `${accounts}?password=${mark()}`, body: "{}" },
  ];
  for (const call of calls) await send(call);
}

/** While statements fail: those that wait for a lock too long, and those whose table is gone. */
async function sendIntoTrouble() {
  const each = async () => [
    await send({ path: credentials, body: credential(token()) }),
    await send({ path: accounts, body: account(password()) }),
    await send({ path: destinations, body: destination(JSON.stringify(kinds[0]?.())) }),
  ];
  await sql.begin(async (tx) => {
    await tx.unsafe("lock table credentials, user_accounts, destinations in access exclusive mode");
    for (const { status } of await each()) expect(status).toBe(409);
  });
  await sql.unsafe(`alter table credentials rename to c; alter table user_accounts rename to u;
    alter table destinations rename to d`);
  for (const { status } of await each()) expect(status).toBe(500);
  await sql.unsafe(`alter table c rename to credentials; alter table u rename to user_accounts;
    alter table d rename to destinations`);
}

/** Keys of clients: each shown once, in the answer that makes it. */
async function useKeys(): Promise<string[]> {
  const { apiClient } = JSON.parse(
    (await send({ path: "/v1/api-clients", body: `{"name":"a","type":"USER","role":"manager"}` })).text,
  );
  const made = JSON.parse((await send({ path: `/v1/api-clients/${apiClient.id}/keys`, body: "{}" })).text);
  answers.pop();
  const headers = { "service-api-key": made.secret };
  expect((await send({ method: "GET", path: credentials, headers })).status).toBe(200);
  for (const wrong of [`${made.secret}x`, made.secret.slice(0, -1), made.secret.toLowerCase()])
    await send({ method: "GET", path: credentials, headers: { "service-api-key": wrong } });
  await send({ method: "GET", path: `/v1/api-clients/${apiClient.id}/keys` });
  const [tenant] = await sql<{ id: string }[]>`select id from tenants`;
  const other = await createClient(sql, tenant?.id ?? "", { name: "b", type: "USER", role: "user" });
  const { text } = await createKey(sql, tenant?.id ?? "", other.id, { description: "", expiresMs: null });
  await send({ path: credentials, body: credential(token()), headers: { "service-api-key": text } });
  return [made.secret, text].map((key) => key.split("_")[2] as string);
}

test("no secret, password or key is found in an answer, a log line, a row or a file", async () => {
  await sendSecrets();
  await sendDestinations();
  await testDestinations();
  await sendElsewhere();
  await sendIntoTrouble();
  const keys = await useKeys();
  for (const path of [credentials, destinations, "/v1/audit-log", "/v1/api-clients"]) {
    expect((await send({ method: "GET", path: `${path}?pageSize=1000` })).status).toBe(200);
  }
  const [tenant] = await sql<{ id: string }[]>`select id from tenants`;
  const stored = await sql<{ id: string }[]>`select id from credentials where tenant_id = ${tenant?.id ?? ""}`;
  const opened = await Promise.all(stored.map(({ id }) => openSecrets(sql, tenant?.id ?? "", id, keyring(config))));
  const rows = await everyRow(sql);
  connection.close();
  await pool.close();
  await server.stop();
  const masterKey = readFileSync(join(dataDir, "master.key"), "utf8").trim().split(":")[1] as string;
  const found = (text: string | Buffer) => [
    ...marks.within(text),
    ...[...keys, masterKey].filter((key) => text.includes(key)).map((key) => key.slice(0, 8)),
  ];

  // The search finds what is there.
  expect(found(JSON.stringify(opened))).not.toEqual([]);
  for (const { secrets } of opened) expect(found(Buffer.from(secrets.token ?? "").toString("hex"))).not.toEqual([]);
  expect(answers.length).toBeGreaterThan(500);
  expect(lines.length).toBeGreaterThan(500);
  expect(lines.filter((line) => line.includes("unexpected error"))).toHaveLength(3);

  expect(answers.filter((answer) => found(answer).length > 0)).toEqual([]);
  expect(lines.filter((line) => found(line).length > 0)).toEqual([]);
  expect(rows.filter((row) => found(row).length > 0)).toEqual([]);
  const files: string[] = [];
  for (const { path, bytes } of everyFile(dataDir))
    if (path !== "master.key" && found(bytes).length > 0) files.push(path);
  expect(files).toEqual([]);
});

/** The fields of a message and of all that it holds. */
function fieldsOf(desc: DescMessage, seen = new Set<DescMessage>()): DescField[] {
  if (seen.has(desc)) return [];
  seen.add(desc);
  return desc.fields.flatMap((field) => [field, ...(field.message === undefined ? [] : fieldsOf(field.message, seen))]);
}

test("texts that are only sent in, never shown, are marked so that errors do not quote them", () => {
  const fields = new Set(allMethods.flatMap(({ input }) => fieldsOf(input)));
  const texts = [...fields].filter(
    (field) =>
      field.scalar === ScalarType.STRING && getOption(field, field_behavior).includes(FieldBehavior.INPUT_ONLY),
  );
  expect(texts.map(({ name }) => name).sort()).toEqual(["password", "password", "secrets", "secrets"]);
  expect(texts.filter(({ proto }) => proto.options?.debugRedact !== true).map(String)).toEqual([]);
});
