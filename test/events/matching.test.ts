import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { transport } from "../support/clients.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const path = "/v1/event-management/status:matching";

async function place(count: number) {
  const tenant = await testTenant(server.database.sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers));
  const call = v1(server.url, tenant.headers);
  await receiver.putEvents({
    events: Array.from({ length: count }, (_, i) => ({
      name: i % 2 === 0 ? "even" : "odd",
      timestamp: BigInt(Date.now()),
      dimensions: { host: `h${i}` },
      severity: 4,
      status: 1,
    })),
  });
  const acknowledged = async () => {
    const clause = { filter: { field: "acknowledged", operation: "OP_EQUALS", value: true } };
    const { body } = await call("POST", "/v1/events:count", { query: { clause }, fields: [{ field: "name" }] });
    return Object.fromEntries(
      body.results.name.values.map(({ value, count: found }: { value: string; count: string }) => [value, found]),
    );
  };
  return { call, acknowledged, tenantId: tenant.id };
}

const odd = { clause: { filter: { field: "labels.alertname", operation: "OP_EQUALS", value: "odd" } } };

test("all that match and do not stand so yet are changed, a thousand in a call", async () => {
  const { call, acknowledged } = await place(2500);
  const first = await call("POST", path, { query: odd, acknowledged: true });
  expect(first).toMatchObject({ status: 200, body: { remainingCount: "250" } });
  expect(first.body.statusResponses).toHaveLength(1000);
  expect(first.body.statusResponses[0]).toMatchObject({ success: true, error: "" });
  const second = await call("POST", path, { query: odd, acknowledged: true });
  expect(second.body.statusResponses).toHaveLength(250);
  expect(second.body.remainingCount).toBe("0");
  expect(await acknowledged()).toEqual({ odd: "1250" });
  expect((await call("POST", path, { query: odd, acknowledged: true })).body).toEqual({
    statusResponses: [],
    remainingCount: "0",
  });
  const both = await call("POST", path, {
    query: odd,
    acknowledged: true,
    statusWrapper: { status: "STATUS_CLOSED" },
  });
  expect(both.body.remainingCount).toBe("250");
});

test("what is closed between the search and the change is not opened again", async () => {
  const { call, tenantId } = await place(2);
  const { sql } = server.database;
  const query = { statuses: ["STATUS_OPEN"] };
  const setting = await transaction(server.database.pool.background, async (tx) => {
    await tx`select from events where tenant_id = ${tenantId} and name = 'odd' for no key update`;
    const answer = call("POST", path, { query, statusWrapper: { status: "STATUS_SUPPRESSED" } });
    while ((await lockWaits(sql, "%from events e%")) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await tx`
      update occurrences set status = 3, end_ms = last_seen_ms
      where tenant_id = ${tenantId}
        and event_id = (select id from events where tenant_id = ${tenantId} and name = 'odd')`;
    return { answer };
  });
  const { body } = await setting.answer;
  expect(body).toMatchObject({ statusResponses: [{ success: true }], remainingCount: "0" });
  const rows = await sql<{ name: string; status: number; ended: boolean }[]>`
    select e.name, o.status, o.end_ms is not null as ended
    from occurrences o join events e on e.tenant_id = ${tenantId} and e.id = o.event_id
    where o.tenant_id = ${tenantId} order by e.name`;
  expect(rows).toEqual([
    { name: "even", status: 2, ended: false },
    { name: "odd", status: 3, ended: true },
  ]);
});

test.each([
  [{ acknowledged: true }, "query"],
  [{ query: odd }, "acknowledged: is required, or statusWrapper"],
  [{ query: { ...odd, fields: [{ field: "name" }] }, acknowledged: true }, "query.fields"],
])("%j is refused and changes nothing", async (body, message) => {
  const { call, acknowledged } = await place(2);
  expect(await call("POST", path, body)).toMatchObject({
    status: 400,
    body: { code: 3, message: expect.stringContaining(message) },
  });
  expect(await acknowledged()).toEqual({});
});
