import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const program = new URL("send-events.ts", import.meta.url).pathname;

async function sendEvents(key: string | undefined, count: number) {
  const args = [program, new URL(server.url).host, server.caFile ?? "", key ?? "", String(count)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

test("another program sends 1,000 events in one client stream over gRPC: all are counted and stored", async () => {
  const tenant = await testTenant(server.database.sql);
  const { answer } = await sendEvents(tenant.headers["service-api-key"], 1000);
  expect(answer).toEqual({ succeeded: 1000, message: "1000 of 1000 events processed" });
  const [stored] = await server.database.sql`
    select
      (select count(*)::int4 from events where tenant_id = ${tenant.id}) as events,
      (select sum(instance_count)::int4 from occurrences where tenant_id = ${tenant.id}) as instances,
      (select count(*)::int4 from entities where tenant_id = ${tenant.id}) as entities`;
  expect(stored).toEqual({ events: 1000, instances: 1000, entities: 10 });
});

test("with a wrong key it is refused, and told why", async () => {
  const { error } = await sendEvents("nonsense", 1000);
  expect(error).toMatchObject({ code: 16, details: expect.stringContaining("mistyped") });
});
