import { expect, inject, test } from "vitest";
import { onCitus } from "../support/citus.ts";
import { testServer } from "../support/server.ts";
import { firstProcessIn, pidFileOf, startNodes } from "./citus-cluster.ts";
import { killProcesses } from "./postgres-process.ts";
import { notThereOnce, type SendingTenant, sendingTenants, tenantsAt } from "./sending-tenants.ts";

/** Waits until it holds of each; what hangs ends. */
const eventually = (tenants: readonly SendingTenant[], holds: (tenant: SendingTenant) => boolean) =>
  expect.poll(() => tenants.filter((each) => !holds(each)).map(({ id }) => id)).toEqual([]);

/** Waits until some more of what each sends is acknowledged and notified. */
async function goesOn(tenants: readonly SendingTenant[], more = 10) {
  const before = new Map(tenants.map(({ id, acknowledged }) => [id, acknowledged.length]));
  const last = ({ id, acknowledged }: SendingTenant) => acknowledged[(before.get(id) as number) + more];
  await eventually(tenants, (each) => {
    const name = last(each);
    return name !== undefined && each.arrived(name);
  });
}

test.runIf(onCitus)("a killed worker keeps back its own tenants alone; nothing acknowledged is lost", async () => {
  await using stack = new AsyncDisposableStack();
  const server = await testServer({ BELFRY_METRICS_ADDRESS: "0", BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
  const { sql } = server.database;
  const load = await sendingTenants(server, 10, stack);
  const lost = (inject("database").nodes as string[]).at(-1) as string;
  const lostPort = Number(new URL(lost).port);
  const there = await tenantsAt(sql, lostPort);
  const own = load.tenants.filter(({ id }) => there.has(id));
  const others = load.tenants.filter(({ id }) => !there.has(id));
  expect(Math.min(others.length, own.length)).toBeGreaterThan(0);

  await goesOn(load.tenants);
  await killProcesses(firstProcessIn(await pidFileOf(lost)));
  await eventually(own, ({ refused }) => refused.length > 20);
  await goesOn(others, 50);
  // What was sent is in the list of deliveries before the worker is back.
  const acknowledged = others.map((each) => ({ ...each, acknowledged: [...each.acknowledged] }));
  await expect
    .poll(async () => (await Promise.all(acknowledged.map((each) => notThereOnce(sql, each)))).flat())
    .toEqual([]);
  const listed = await acknowledged[0]?.call("GET", "/v1/notification/deliveries?status=SENT&pageSize=1");
  expect(Number(listed?.body.totalCount)).toBeGreaterThanOrEqual(acknowledged[0]?.acknowledged.length as number);

  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  const up = (await (await fetch(server.metricsUrl as string)).text()).matchAll(
    /^belfry_database_worker_up\{worker="[^"]+:(\d+)"\} (\d)$/gm,
  );
  expect(new Map([...up].map(([, port, value]) => [Number(port), value])).get(lostPort)).toBe("0");
  const [other] = others as [SendingTenant];
  const client = await other.call("POST", "/v1/api-clients", { name: "agent", type: "DATA_INGEST" });
  expect(client.status).toBe(200);

  await startNodes(inject("database").start as string[]);
  await goesOn(load.tenants);
  await load.stop();

  expect(others.flatMap(({ refused }) => refused)).toEqual([]);
  expect([...new Set(own.flatMap(({ refused }) => refused))]).toEqual(["503 14"]);
  await eventually(load.tenants, ({ acknowledged, arrived }) => acknowledged.every(arrived));
  await expect
    .poll(async () => (await Promise.all(load.tenants.map((each) => notThereOnce(sql, each)))).flat())
    .toEqual([]);
});
