import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { connectOnce } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { retryDelivery } from "../../src/notifications/api/deliveries.ts";
import { openSendEnvironment } from "../../src/notifications/kinds/send-environment.ts";
import type { Attempt } from "../../src/notifications/queue/attempts.ts";
import { record } from "../../src/notifications/queue/result-statements.ts";
import { cutOffResults } from "../../src/notifications/sending/classify-response.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { mailReceiver } from "../support/receivers.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { dispatchSite } from "./dispatch.ts";
import { destinationsPath } from "./samples.ts";

const [ada, bob, cyd] = ["ada@example.com", "bob@example.com", "cyd@example.com"];
/** What the relay says to an address; absent: that it takes the mail. */
const refusals = new Map<string, number>();
const relay = await mailReceiver({
  onRcptTo({ address }, _session, callback) {
    const responseCode = refusals.get(address);
    callback(responseCode === undefined ? null : Object.assign(new Error(`5.1 not ${address}`), { responseCode }));
  },
});
afterAll(() => relay[Symbol.asyncDispose]());
const relaySettings = {
  BELFRY_SMTP_URL: `smtp://127.0.0.1:${relay.port}?ignoreTLS=true`,
  BELFRY_SMTP_SENDER: "belfry@example.com",
};
const world = openSendEnvironment(readConfig(relaySettings), {
  ownUrl: "https://belfry.test",
  nowMs: Date.now,
  createEvent: async () => undefined,
});
afterAll(() => world.outbound.close());
const site = await dispatchSite();
const server = await testServer(relaySettings);
const { sql, nowMs } = site;

const received = () => relay.mails.flatMap(({ to }) => to);
beforeEach(() => {
  relay.mails.length = 0;
  refusals.clear();
});

const team = { kind: "email", type: { email: { to: ada, alsoTo: [bob, cyd] } } };
async function emailTenant(destinations: Parameters<typeof site.tenant>[0] = { ops: team }) {
  const tenant = await site.tenant(destinations);
  const attempts = async (): Promise<Attempt[]> => {
    const rows = await sql<{ attempts: Attempt[] }[]>`
      select attempts from due_deliveries where tenant_id = ${tenant.id}
      union all select attempts from delivery_history where tenant_id = ${tenant.id}`;
    return rows[0]?.attempts ?? [];
  };
  const dispatch: typeof tenant.dispatch = (atMs, more) => tenant.dispatch(atMs, { world, ...more });
  return { ...tenant, dispatch, attempts };
}
const reasons = ({ recipients = [] }: Attempt) =>
  Object.fromEntries(recipients.map(({ address, reason }) => [address, reason]));
/** After the longest wait before the second try. */
const again = nowMs + 10_000;

describe("a mail to several addresses", () => {
  test("is one for each of them, under one Message-ID, and SENT once all are accepted", async () => {
    const { put, dispatch, done, attempts } = await emailTenant();
    await put([{}]);
    await dispatch(nowMs);
    expect(received()).toEqual([ada, bob, cyd]);
    for (const [i, { raw }] of relay.mails.entries()) expect(raw).toContain(`To: ${[ada, bob, cyd][i]}\r\n`);
    expect(new Set(relay.mails.map(({ raw }) => /^Message-ID: .*$/m.exec(raw)?.[0])).size).toBe(1);
    expect(await done()).toMatchObject([{ status: "SENT", error: "" }]);
    const [attempt] = await attempts();
    expect(attempt).toMatchObject({ reason: "sent", answer: "accepted: 3 of 3 addresses" });
    expect(reasons(attempt as Attempt)).toEqual({ [ada]: "sent", [bob]: "sent", [cyd]: "sent" });
  });

  test("that is deferred for one goes to that one alone when it is tried again", async () => {
    const { put, dispatch, waiting, done, attempts } = await emailTenant();
    refusals.set(bob, 451);
    await put([{}]);
    await dispatch(nowMs);
    expect(received()).toEqual([ada, cyd]);
    const error = `busy: ${bob}: 451 5.1 not ${bob}; accepted: 2 of 3 addresses`;
    expect(await waiting()).toMatchObject([{ error, tries: 1 }]);
    refusals.clear();
    await dispatch(again);
    expect(received()).toEqual([ada, cyd, bob]);
    expect(await done()).toMatchObject([{ status: "SENT" }]);
    expect((await attempts()).map(reasons)).toEqual([
      { [ada]: "sent", [bob]: "busy", [cyd]: "sent" },
      { [bob]: "sent" },
    ]);
  });

  test("that one refuses for good goes to the others, FAILED names it, and a retry by hand asks it alone", async () => {
    const { id, put, dispatch, done, attempts } = await emailTenant();
    refusals.set(bob, 550).set(cyd, 450);
    const [delivery] = await put([{}]);
    await dispatch(nowMs);
    await dispatch(again);
    refusals.delete(cyd);
    await dispatch(again + 60_000);
    expect(received()).toEqual([ada, cyd]);
    const error = `rejected: ${bob}: 550 5.1 not ${bob}; accepted: 2 of 3 addresses`;
    expect(await done()).toMatchObject([{ status: "FAILED", error }]);
    expect((await attempts()).map(reasons)).toEqual([
      { [ada]: "sent", [bob]: "rejected", [cyd]: "busy" },
      { [cyd]: "busy" },
      { [cyd]: "sent" },
    ]);
    await transaction(sql, (tx) => retryDelivery(tx, id, delivery as string, again + 120_000));
    refusals.clear();
    await dispatch(again + 120_000);
    expect(received()).toEqual([ada, cyd, bob]);
    expect(await done()).toMatchObject([{ status: "SENT" }]);
  });

  test("that some were sent is followed by its end, though it has FAILED", async () => {
    const { put, dispatch, done } = await emailTenant();
    refusals.set(bob, 550);
    await put([{}]);
    await dispatch(nowMs);
    await put([{ occasion: "clear", createdMs: nowMs + 1 }]);
    refusals.clear();
    await dispatch(again);
    expect((await done()).map(({ status }) => status)).toEqual(["FAILED", "SENT"]);
    expect(received()).toEqual([ada, cyd, ada, bob, cyd]);
    expect(relay.mails.at(-1)?.raw).toContain("In-Reply-To: ");
  });

  test("that no one takes has FAILED, and its end is not sent", async () => {
    const { put, dispatch, done } = await emailTenant();
    for (const address of [ada, bob, cyd]) refusals.set(address, 550);
    await put([{}]);
    await dispatch(nowMs);
    await put([{ occasion: "clear", createdMs: nowMs + 1 }]);
    refusals.clear();
    await dispatch(again);
    expect((await done()).map(({ status }) => status)).toEqual(["FAILED", "CANCELLED"]);
    expect(received()).toEqual([]);
  });

  test("is not overtaken by the next about the same event while an address is deferred, and holds up no other destination", async () => {
    const other = { kind: "email", type: { email: { to: "dee@example.com" } } };
    const { put, dispatch } = await emailTenant({ ops: team, other });
    refusals.set(bob, 451);
    await put([{}, { occasion: "severity", createdMs: nowMs + 1 }, { destination: "other", createdMs: nowMs }]);
    await dispatch(nowMs + 1);
    expect(received().toSorted()).toEqual([ada, cyd, "dee@example.com"]);
    relay.mails.length = 0;
    refusals.clear();
    await dispatch(again);
    expect(received()).toEqual([bob, ada, bob, cyd]);
  });

  test("stops at a relay that refuses the log-in or is gone: the others are tried with the next try", async () => {
    const { put, dispatch, waiting, attempts } = await emailTenant();
    const gone = await mailReceiver();
    await gone[Symbol.asyncDispose]();
    const env = { ...relaySettings, BELFRY_SMTP_URL: `smtp://127.0.0.1:${gone.port}` };
    const away = openSendEnvironment(readConfig(env), {
      ownUrl: "",
      nowMs: Date.now,
      createEvent: async () => undefined,
    });
    await put([{}]);
    await dispatch(nowMs, { world: away });
    expect(await waiting()).toMatchObject([
      { error: `network: ${ada}: no answer of the mail relay (ESOCKET); not tried: 2; accepted: 0 of 3 addresses` },
    ]);
    expect((await attempts()).map(reasons)).toEqual([{ [ada]: "network" }]);
    await dispatch(again);
    expect(received()).toEqual([ada, bob, cyd]);
    await away.outbound.close();
  });

  test("that a stopping server cuts off goes to the rest alone when the next one starts", async () => {
    const { id, put, dispatch, done, attempts } = await emailTenant();
    await put([{}]);
    const recipients = [{ address: ada, reason: "sent", answer: "250 ok" }];
    const cutOff = { result: "failed", reason: "network", course: "retry", answer: "", state: {}, recipients } as const;
    const [tried] = await dispatch(nowMs, { send: async () => cutOff });
    // As if it had been cut off: that try is still under way.
    await sql`update due_deliveries set attempts = '[]', tries = 0, due_ms = 0 where tenant_id = ${id}`;
    const { row } = tried as NonNullable<typeof tried>;
    const ready = { row, others: [], match: "1", over: [], summary: undefined, ends: false, state: {} } as never;
    await record(site.pool.sending, id, cutOffResults(ready, cutOff, nowMs), new Set(), nowMs);
    await dispatch(again);
    expect(received()).toEqual([bob, cyd]);
    expect(await done()).toMatchObject([{ status: "SENT" }]);
    expect((await attempts()).map(reasons)).toEqual([{ [ada]: "sent" }, { [bob]: "sent", [cyd]: "sent" }]);
  });
});

test("a server that starts after another has died sends to the addresses that are left", async () => {
  const own = await testDatabase();
  const start = () =>
    startServer(
      readConfig({
        ...relaySettings,
        DATABASE_URL: own.url,
        BELFRY_DATA_DIR: temporaryDir(),
        BELFRY_PORT: "0",
        BELFRY_PLAINTEXT: "1",
        BELFRY_SHUTDOWN_TIMEOUT: "500ms",
        BELFRY_MASTER_KEYS: masterKeys,
      }),
      openLog("silent"),
    );
  const first = await start();
  const tenant = await testTenant(own.sql);
  const call = v1(first.url, tenant.headers);
  refusals.set(cyd, 451);
  const rule = { name: "r", enabled: true, matchers: ['host="web-1"'], destinationNames: ["team"] };
  const event = { name: "disk", dimensions: { host: "web-1" }, timestamp: String(nowMs), severity: 4, status: 1 };
  for (const [path, body] of [
    [destinationsPath, { name: "team", type: team.type }],
    ["/v1/notification/rules", rule],
    ["/v1/data-receiver/events", { events: [event] }],
  ] as const)
    expect(await call("POST", path, body)).toMatchObject({ status: 200 });
  const deliveries = async (url: string) =>
    (await v1(url, tenant.headers)("GET", "/v1/notification/deliveries")).body.deliveries;
  await expect.poll(() => deliveries(first.url)).toMatchObject([{ status: "PENDING", attempts: 1 }]);
  await first.stop();
  refusals.clear();
  await own.sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id}`;
  await own.sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id}`;
  const second = await start();
  await expect.poll(() => deliveries(second.url)).toMatchObject([{ status: "SENT", attempts: 2 }]);
  const [{ tries }] = await deliveries(second.url);
  await second.stop();
  expect(tries.map(({ recipients }: { recipients: object[] }) => recipients)).toMatchObject([
    [
      { address: ada, reason: "sent" },
      { address: bob, reason: "sent" },
      { address: cyd, reason: "busy", answer: `451 5.1 not ${cyd}` },
    ],
    [{ address: cyd, reason: "sent" }],
  ]);
  expect(received()).toEqual([ada, bob, cyd]);
});

describe("alsoTo", () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `a${i}@example.com`);

  async function created(email: object) {
    const { url, database } = server;
    const { headers } = await testTenant(database.sql);
    return await v1(url, headers)("POST", destinationsPath, { name: "team", type: { email } });
  }

  test("has up to 19 addresses, which answers show in their order", async () => {
    const { status, body } = await created({ to: ada, alsoTo: many(19) });
    expect([status, body.destination?.type.email.alsoTo]).toEqual([200, many(19)]);
  });

  test.each([
    ["twenty", { to: ada, alsoTo: many(20) }, "alsoTo"],
    ["none", { to: ada, alsoTo: [bob, ""] }, "alsoTo[1]"],
    ["one with a name", { to: ada, alsoTo: ["Bob <bob@example.com>"] }, "alsoTo[0]"],
    ["two in one", { to: ada, alsoTo: ["a@example.com,b@example.com"] }, "alsoTo[0]"],
    ["a further header", { to: ada, alsoTo: ["a@example.com\r\nBcc: b@example.com"] }, "alsoTo[0]"],
    ["the one of to, in capitals", { to: ada, alsoTo: [bob, "ADA@example.com"] }, "alsoTo[1]"],
    ["one twice", { to: ada, alsoTo: [bob, cyd, bob] }, "alsoTo[2]"],
  ])("is refused with %s, and the field is named", async (_what, email, path) => {
    const { status, body } = await created(email);
    expect([status, body.code]).toEqual([400, 3]);
    expect(body.message).toContain(`type.email.${path}: `);
  });

  test("a test of such a destination goes to all of its addresses, and names the one that refuses", async () => {
    const { url, database } = server;
    const { headers } = await testTenant(database.sql);
    const call = v1(url, headers);
    refusals.set(bob, 550);
    const { body } = await call("POST", `${destinationsPath}:test`, { name: "team", type: team.type });
    expect(body).toMatchObject({ code: 9, message: expect.stringContaining(`${bob}: 550`) });
    expect(received()).toEqual([ada, cyd]);
  });

  test("is refused while a server of before is there, which goes on to read all that is stored", async () => {
    const former = await testDatabase();
    await former.sql`
      update migrations set oldest_server = '0.1.0', applied_at = now() - interval '5 minutes' where name = '0026_closed-by'`;
    // As one of 0.3.0 is named.
    const before = connectOnce(former.url, "belfry sending");
    await before.sql`select 1`;
    const { url, target } = await testServer({ DATABASE_URL: former.url });
    const { headers, id } = await testTenant(former.sql);
    const call = v1(url, headers);
    const name = "team";
    expect((await call("POST", destinationsPath, { name, type: { email: { to: ada } } })).status).toBe(200);
    const message =
      "alsoTo of an email destination cannot be read by a server before 0.4.0, and one has used this database within the last minute; when all are stopped, wait for a minute and send again";
    for (const refused of [
      await call("PUT", `${destinationsPath}/${name}`, { type: team.type }),
      await call("POST", destinationsPath, { name: "other", type: team.type }),
    ])
      expect(refused.body).toMatchObject({ code: 9, message });
    const oldest = () => former.sql`select oldest_server as v from migrations where name = '0026_closed-by'`;
    expect(await oldest()).toEqual([{ v: "0.1.0" }]);
    const rows = await former.sql<{ type: object }[]>`select type from destinations where tenant_id = ${id}`;
    expect(rows).toEqual([{ type: { email: { to: ada } } }]);

    await before.close();
    const left = () => former.sql`
      select from pg_stat_activity where application_name = 'belfry sending' and datname = current_database()`;
    await expect.poll(async () => (await left()).count).toBe(0);
    await former.sql`update migrations set applied_at = now() - interval '1 minute' where name = '0026_closed-by'`;
    const client = createClient(DestinationService, transport(target, "grpc", headers));
    const { destination } = await client.getDestination({ name });
    const type = create(DestinationTypeSchema, { type: { case: "email", value: { to: ada, alsoTo: [bob] } } });
    await client.replaceDestination({ destination: { name, type, etag: destination?.etag ?? "" } });
    expect(await oldest()).toEqual([{ v: "0.4.0" }]);
  });
});
