import { describe, expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({});
const { sql } = server.database;
const busy = await testTenant(sql);
const other = await testTenant(sql);

/** Statements on this table take as long as `meanwhile` does. */
async function slow(table: string, meanwhile: () => Promise<void>) {
  await transaction(sql, async (tx) => {
    await tx.unsafe(`lock table ${table} in access exclusive mode`);
    await meanwhile();
  });
}

describe("beside 100 slow calls of a neighbour", () => {
  test("events come in, keys are checked, searches and refusals are answered", async () => {
    let answered = 0;
    const call = v1(server.url, busy.headers);
    const calls: Promise<unknown>[] = [];
    await slow("credentials", async () => {
      for (let i = 0; i < 100; i++) {
        const count = () => {
          answered += 1;
        };
        calls.push(call("GET", "/v1/credentials").then(count, count));
      }
      const json = v1(server.url, other.headers);
      const event = { name: "disk full", timestamp: String(Date.now()), dimensions: { source: "a" } };
      const stored = await json("POST", "/v1/data-receiver/events", { events: [event] });
      expect(stored.body).toMatchObject({ succeeded: 1 });
      const found = await json("POST", "/v1/events:search", { query: {} });
      expect(found.status).toBe(200);
      expect((await json("POST", "/v1/api-clients", { name: "no type" })).status).toBe(400);
      const audit = await json("GET", "/v1/audit-log?rpc=CreateApiClient");
      expect(audit.body.entries).toHaveLength(1);
      expect(answered).toBe(0);
    });
    await Promise.all(calls);
  });
});
