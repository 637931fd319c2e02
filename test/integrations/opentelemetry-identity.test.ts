import { describe, expect, test } from "vitest";
import { entityCommand } from "../../src/cli/entities.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";

const server = await testServer();
const { sql } = server.database;

type Attributes = Record<string, string>;
const listOf = (all: Attributes) => Object.entries(all).map(([key, stringValue]) => ({ key, value: { stringValue } }));

async function world() {
  const tenant = await testTenant(sql);
  const call = tool(server, tenant.headers);
  const json = v1(server.url, tenant.headers);
  return {
    tenant,
    json,
    call,
    /** One point of each resource. */
    async send(...resources: Attributes[]) {
      const resourceMetrics = resources.map((attributes) => ({
        resource: { attributes: listOf(attributes) },
        scopeMetrics: [{ metrics: [{ name: "orders", gauge: { dataPoints: [{ asDouble: 1 }] } }] }],
      }));
      expect(await call("POST", "/v1/metrics", { resourceMetrics })).toMatchObject({ status: 200, body: {} });
    },
    /** The dimensions of living entities that have series. */
    async measured(): Promise<Attributes[]> {
      const rows = await sql<{ dimensions: Attributes }[]>`
        select n.dimensions from entities n where n.tenant_id = ${tenant.id} and n.deleted_ms is null and exists (
          select from series s where s.tenant_id = n.tenant_id and s.entity_id = n.id) order by n.dimensions::text collate "C" desc`;
      return rows.map(({ dimensions }) => dimensions);
    },
    /** A model as version 0.2 has stored it for a resource. */
    async stored(dimensions: Attributes, metadataFields: Attributes) {
      const models = [{ timestamp: String(Date.now() - 60_000), dimensions, metadataFields }];
      expect((await json("POST", "/v1/data-receiver/models", { models })).status).toBe(200);
      const points = [{ metric: "orders", timestamp: String(Date.now() - 60_000), value: 1, dimensions }];
      expect((await json("POST", "/v1/data-receiver/metrics", { metrics: points })).status).toBe(200);
    },
  };
}

const shop = { "service.name": "shop", "host.id": "h-1" };
const cart = { "service.name": "cart", "host.id": "h-1" };

describe("a resource is an entity", () => {
  test.each<[string, Attributes, Attributes]>([
    ["its service on its host", { ...shop, "host.name": "web-1", "os.type": "linux" }, shop],
    [
      "its replica",
      { ...shop, "service.instance.id": "i-1" },
      { "service.name": "shop", "service.instance.id": "i-1" },
    ],
    [
      "its service in a namespace and a pod",
      { ...shop, "service.namespace": "eu", "k8s.pod.uid": "p-1", "container.id": "c-1" },
      { "service.name": "shop", "service.namespace": "eu", "k8s.pod.uid": "p-1" },
    ],
    ["its service alone", { "service.name": "shop", "os.type": "linux" }, { "service.name": "shop" }],
    [
      "its host, where nobody has named the service",
      { ...shop, "service.name": "unknown_service:node" },
      { "host.id": "h-1" },
    ],
    [
      "its container, whatever id a nameless service has",
      { "service.name": "unknown_service", "service.instance.id": "i-1", "container.id": "c-1" },
      { "container.id": "c-1" },
    ],
    ["all it has", { "os.type": "linux" }, { "os.type": "linux" }],
  ])("by %s", async (_, attributes, dimensions) => {
    const { send, measured } = await world();
    await send(attributes);
    expect(await measured()).toEqual([dimensions]);
  });

  test("of its own beside other services of the host, and beside the host", async () => {
    const { send, measured } = await world();
    await send({ "host.id": "h-1" });
    await send(shop, cart, { "host.id": "h-1" });
    expect(await measured()).toEqual([{ "host.id": "h-1" }, shop, cart]);
  });
});

describe("an entity that is stored under the identity before", () => {
  test("keeps it, for metrics and events, until the tenant is moved over", async () => {
    const { tenant, send, measured, stored, call, json } = await world();
    await stored({ "host.id": "h-1" }, { "service.name": "shop" });
    await send(shop, cart);
    const record = { eventName: "disk.full", severityNumber: 17, timeUnixNano: `${Date.now()}000000` };
    const logs = [{ resource: { attributes: listOf(shop) }, scopeLogs: [{ logRecords: [record] }] }];
    expect((await call("POST", "/v1/logs", { resourceLogs: logs })).body).toEqual({});
    expect(await measured()).toEqual([{ "host.id": "h-1" }]);
    const { body } = await json("POST", "/v1/events:search", { query: {} });
    expect(body.results[0].occurrences[0].dimensions).toEqual({ "host.id": "h-1" });

    const command = entityCommand(["entities", "reidentify", "--tenant", tenant.name]) ?? expect.fail();
    expect(await command(sql)).toContain("1 entities are deleted");
    expect(await command(sql)).toContain("0 entities are deleted");
    expect(await measured()).toEqual([]);
    // Another server, or this one half a minute later: what it remembers of these resources is of no use.
    await send({ ...shop, "os.type": "linux" }, { ...cart, "os.type": "linux" });
    expect(await measured()).toEqual([shop, cart]);
  });

  test("stays the one whose data a trigger waits for, and pages nobody, by an upgrade or by being moved over", async () => {
    const { tenant, json, send, stored } = await world();
    await stored({ "host.id": "h-1" }, { "service.name": "shop" });
    const type = { staleData: { metricName: "orders", durationSec: "60" } };
    expect((await json("POST", "/v1/notification/triggers", { name: "silent", type })).status).toBe(200);
    const to = { name: "hook", type: { webhook: { url: "https://hooks.example.com/x" } } };
    expect((await json("POST", "/v1/notification/destinations", to)).status).toBe(200);
    const rule = { name: "r", enabled: true, triggerNames: ["silent"], destinationNames: ["hook"] };
    expect((await json("POST", "/v1/notification/rules", rule)).status).toBe(200);
    const watched = async () =>
      (
        await sql<{ dimensions: Attributes; age: number }[]>`
          select n.dimensions, floor(extract(epoch from now()) - w.last_ms / 1000)::int4 as age
          from stale_watches w join entities n on n.tenant_id = w.tenant_id and n.id = w.entity_id
          where w.tenant_id = ${tenant.id} order by n.dimensions::text collate "C" desc`
      ).map(({ dimensions, age }) => [dimensions, age < 30 ? "heard of" : "nearly missed"]);
    const within = { timeout: 40_000, interval: 200 };
    await expect.poll(watched, within).toEqual([[{ "host.id": "h-1" }, "heard of"]]);
    await sql`update stale_watches set last_ms = last_ms - 45000 where tenant_id = ${tenant.id}`;
    expect(await watched()).toEqual([[{ "host.id": "h-1" }, "nearly missed"]]);
    await send(shop);
    await expect.poll(watched, within).toEqual([[{ "host.id": "h-1" }, "heard of"]]);

    await (entityCommand(["entities", "reidentify", "--tenant", tenant.name]) ?? expect.fail())(sql);
    await sql`update stale_watches set last_ms = last_ms - 45000 where tenant_id = ${tenant.id}`;
    await send({ ...shop, "os.type": "linux" });
    await expect.poll(watched, within).toEqual([[shop, "heard of"]]);
    const { body } = await json("GET", "/v1/notification/deliveries");
    expect(body.deliveries).toEqual([]);
  }, 120_000);

  test("is no other one: not of the same service without a namespace, nor of a nameless one", async () => {
    const { send, measured, stored } = await world();
    await stored({ "service.name": "shop" }, {});
    await stored({ "host.id": "h-1" }, { "service.name": "unknown_service:node" });
    await send({ "service.name": "shop", "service.namespace": "eu" }, cart);
    expect(await measured()).toContainEqual({ "service.name": "shop", "service.namespace": "eu" });
    expect(await measured()).toContainEqual(cart);
  });

  test("of a service in a namespace, and of a nameless one, keeps it too", async () => {
    const { send, measured, stored } = await world();
    const nameless = { "service.name": "unknown_service:java", "service.instance.id": "i-1" };
    await stored({ "service.name": "shop" }, { "service.namespace": "eu" });
    await stored(nameless, { "host.id": "h-1" });
    await send({ "service.name": "shop", "service.namespace": "eu" }, { ...nameless, "host.id": "h-1" });
    expect(await measured()).toEqual([nameless, { "service.name": "shop" }]);
  });
});

test("log records from ERROR on are events that are open", async () => {
  const { call, json } = await world();
  const logRecords = [16, 17, 21].map((severityNumber) => ({
    eventName: `e${severityNumber}`,
    severityNumber,
    timeUnixNano: `${Date.now()}000000`,
  }));
  const resourceLogs = [{ resource: { attributes: listOf(shop) }, scopeLogs: [{ logRecords }] }];
  expect((await call("POST", "/v1/logs", { resourceLogs })).body).toEqual({});
  const { body } = await json("POST", "/v1/events:search", { query: {} });
  const states = body.results.map(({ name, occurrences }: { name: string; occurrences: { status?: string }[] }) => [
    name,
    occurrences[0]?.status,
  ]);
  expect(Object.fromEntries(states)).toEqual({ e16: "STATUS_DEFAULT", e17: "STATUS_OPEN", e21: "STATUS_OPEN" });
});
