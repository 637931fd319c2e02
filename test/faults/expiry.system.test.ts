import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { serverProcess } from "./server-process.ts";

test("what a server was closing when it was killed is closed by another one", async () => {
  const { sql, url } = await testDatabase();
  const { id, headers } = await testTenant(sql);
  const env = { DATABASE_URL: url, BELFRY_MASTER_KEYS: masterKeys };
  const [killed, other] = await Promise.all([serverProcess(env), serverProcess(env)]);
  onTestFinished(async () => {
    other.resume();
    await Promise.all([killed.stop(), other.stop()]);
  });
  // The first changes are those of the report.
  await killed.start({ points: { "changes:told": { act: "die", at: 2 } } });
  await other.start();
  other.pause();
  const expiresAt = Date.now() + 1500;
  const event = {
    name: "disk full",
    dimensions: { host: "web-1" },
    timestamp: String(Date.now()),
    status: "STATUS_OPEN",
  };
  const answer = await v1(killed.url, headers)("POST", "/v1/data-receiver/events", {
    events: [{ ...event, expiresAt: String(expiresAt) }],
  });
  expect(answer.status).toBe(200);
  await killed.ended();
  other.resume();
  const isClosed = async () =>
    (await sql`select from occurrences where tenant_id = ${id} and end_ms = ${BigInt(expiresAt)}`).count === 1;
  await expect.poll(isClosed, { interval: 50 }).toBe(true);
  expect(await sql`select from annotations where tenant_id = ${id}`).toHaveLength(1);
});
