import { expect, onTestFinished, test } from "vitest";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { formatsNumber } from "../../src/db/session-name.ts";
import { testDatabase } from "../support/database.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { destinationsPath } from "./samples.ts";

const { url, sql } = await testDatabase();
const settings = { BELFRY_OUTBOUND_ALLOW: "127.0.0.1", BELFRY_MASTER_KEYS: masterKeys, DATABASE_URL: url };
const started = () => testServer(settings, { housekeepingMs: 20 });
const signingSecret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
const hidden = "********";

/** The database as one that a server of before has used, though it was not seen for a day. */
async function usedBefore(): Promise<void> {
  await sql`update migrations set oldest_server = '0.1.0' where name = '0026_closed-by'`;
  await sql`insert into leases (name, holder, until_ms) values ('jobs.report', ${`${formatsNumber} here`}, 0)`;
  await notSeen();
}
const notSeen = () => sql`update migrations set applied_at = now() - interval '25 hours' where name = '0026_closed-by'`;

/** A row as 0.3.0 writes it: the address as it is, no hint, and other secrets sealed. */
async function store(db: Sql, { id, headers }: TestTenant, serverUrl: string, name: string, address: string) {
  const type = { webhook: { url: "https://example.com/", signingSecret } };
  expect(await v1(serverUrl, headers)("POST", destinationsPath, { name, type })).toMatchObject({ status: 200 });
  await db`
    update destinations set type = ${db.json({ webhook: { url: address, signingSecret: hidden } })}
    where tenant_id = ${id} and name = ${name}`;
}

/** Waits until housekeeping has done all of a tenant's work at least once. */
async function housekept(tenantId: string): Promise<void> {
  // What it deletes first, twice: when the second is gone, the work that followed the first is done.
  for (const slot of [1n, 2n]) {
    await sql`
      insert into delivery_counts (tenant_id, about, name, slot_ms, count)
      values (${tenantId}, 'rule', 'none', ${slot}, 1)`;
    const left = async () => (await sql`select from delivery_counts where tenant_id = ${tenantId}`).count;
    await expect.poll(left, { interval: 20, timeout: 10_000 }).toBe(0);
  }
}

const addresses = (tenantId: string) => sql<{ name: string; url: string; sealed: boolean }[]>`
  select name, type #>> '{webhook,url}' as url, secrets ? 'webhook.url' as sealed from destinations
  where tenant_id = ${tenantId} order by name`;

test("housekeeping seals what a version before has stored, once none is connected", async () => {
  await usedBefore();
  const receiver = await httpReceiver();
  onTestFinished(() => receiver[Symbol.asyncDispose]());
  receiver.answer(answering(200));
  const before = connectOnce(url, "belfry");
  await before.sql`select 1`;
  const beside = await started();
  const tenants = [await testTenant(sql), await testTenant(sql)];
  const secret = `${receiver.url}/hooks/abcdefgh`;
  const plain = [
    { name: "a", url: secret, sealed: false },
    { name: "b", url: "https://hooks.slack.com/services/T0/B0/abcd", sealed: false },
    { name: "c", url: "https://example.com/abcdefgh", sealed: false },
  ];
  for (const tenant of tenants) for (const each of plain) await store(sql, tenant, beside.url, each.name, each.url);

  for (const { id } of tenants) {
    await housekept(id);
    expect(await addresses(id)).toEqual(plain);
  }
  // What is made beside it has the same form.
  const [tenant] = tenants as [TestTenant, TestTenant];
  const type = { webhook: { url: secret, signingSecret } };
  await v1(beside.url, tenant.headers)("POST", destinationsPath, { name: "made", type });
  const [row] = await sql`select type from destinations where tenant_id = ${tenant.id} and name = 'made'`;
  expect(row?.type).toEqual({ webhook: { url: secret, signingSecret: hidden } });

  await beside.stop();
  await before.close();
  await notSeen();
  const after = await started();
  const hiddenRow = { url: hidden, sealed: true };
  const sealed = [{ name: "a", ...hiddenRow }, { name: "b", ...hiddenRow }, plain[2]];
  for (const { id } of tenants)
    await expect
      .poll(async () => (await addresses(id)).filter(({ name }) => name !== "made"), { timeout: 10_000 })
      .toEqual(sealed);
  const tested = await v1(after.url, tenant.headers)("POST", `${destinationsPath}:test`, {
    name: "a",
    type: { webhook: { url: hidden, signingSecret: hidden } },
  });
  expect(tested).toMatchObject({ status: 200, body: { answer: "HTTP 200" } });
  expect(receiver.received).toMatchObject([{ path: "/hooks/abcdefgh" }]);
  expect(receiver.received[0]?.headers).toHaveProperty("webhook-signature");
});
