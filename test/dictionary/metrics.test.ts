import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { effectiveEntityFields, effectiveMetrics } from "../../src/dictionary/entries.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const path = "/v1/dictionary/metrics";
const batch = `${path}:batchGet`;
const shipped = "system.cpu.utilization";
let tenant: TestTenant;
let json: ReturnType<typeof v1>;
let grpc: ReturnType<typeof createClient<typeof MetricDictionaryService>>;

beforeAll(async () => {
  tenant = await testTenant(sql);
  json = v1(server.url, tenant.headers);
  grpc = createClient(MetricDictionaryService, transport(server.target, "grpc", tenant.headers));
  await json("POST", path, { name: "queue.length", units: "{job}", minimum: "0", isRate: true });
  await json("POST", path, { name: "system.uptime", label: "ours" });
});

const names = (answer: { body: { metrics: { name: string }[] } }) => answer.body.metrics.map(({ name }) => name);

describe("a metric's entry", () => {
  test("keeps every member as it was sent", async () => {
    const entry = {
      name: "room.temperature",
      label: "Room temperature",
      description: "At head height",
      tags: ["building"],
      units: "Cel",
      minimum: "-10.50",
      maximum: "4.5e1",
      scaleFactor: "1",
      scaleFactorUnits: "Cel -> K",
      isRate: false,
    };
    const made = await json("POST", path, entry);
    expect(made).toMatchObject({ status: 200, body: { ...entry, layer: tenant.name, default: null } });
    expect((await json("GET", `${path}/room.temperature`)).body).toEqual(made.body);
    const changed = await json("PATCH", `${path}/room.temperature`, { isRate: true, maximum: "" });
    expect(changed.body).toEqual({ ...made.body, isRate: true, maximum: "" });
    expect((await json("PATCH", `${path}/room.temperature`, { isRate: null })).body.isRate).toBe(false);
  });

  test.each(["minimum", "maximum", "scaleFactor"])("refuses a %s that is no number", async (member) => {
    for (const wrong of ["ten", "1,5", "0x10", "NaN", "Infinity", "1e999", "-1e999", " 5", "5 B", "+5", "05", "."]) {
      const answer = await json("POST", path, { name: "m", [member]: wrong });
      expect(answer, wrong).toMatchObject({ status: 400, body: { code: 3 } });
      expect(answer.body.details[0].fieldViolations[0].field).toBe(member);
    }
    for (const right of ["0", "-0.5", "1e-6", "1.50", "1E+3", ""]) {
      expect((await json("PATCH", `${path}/queue.length`, { [member]: right })).body[member]).toBe(right);
    }
  });

  test("refuses units of conversion without an arrow between two units", async () => {
    for (const wrong of ["B", "->", "B->", "->MB", "a->b->c", "B=>MB", "B- >MB"]) {
      const answer = await json("POST", path, { name: "m", scaleFactorUnits: wrong });
      expect(answer, wrong).toMatchObject({ status: 400, body: { code: 3 } });
    }
    for (const right of ["B->MB", "B -> MB", "m/s->km/h", "1->%", ""]) {
      const answer = await json("PATCH", `${path}/queue.length`, { scaleFactorUnits: right });
      expect(answer.body.scaleFactorUnits).toBe(right);
    }
  });
});

describe("batchGet", () => {
  test("answers the entries that are in effect, in the order of the names, unknown ones left out", async () => {
    const answer = await json("POST", batch, { name: ["system.uptime", "unknown", "queue.length", shipped] });
    expect(names(answer)).toEqual(["system.uptime", "queue.length", shipped]);
    expect(answer.body.metrics[0]).toMatchObject({ label: "ours", layer: tenant.name, default: { layer: "DEFAULT" } });
    expect(answer.body.metrics[2]).toMatchObject({ layer: "DEFAULT", default: null, units: "1" });
    expect(answer.body.metrics[2]).toEqual((await json("GET", `${path}/${shipped}`)).body);
  });

  test("a name that is sent twice has one entry; none that is known answers an empty list", async () => {
    expect(names(await json("POST", batch, { name: [shipped, shipped] }))).toEqual([shipped]);
    expect((await json("POST", batch, { name: ["unknown"] })).body).toEqual({ metrics: [] });
  });

  test.each([{ name: [] }, {}, { name: null }, { name: [""] }, { name: Array(1001).fill("a") }])(
    "%o is refused with 400, code 3",
    async (body) => {
      expect(await json("POST", batch, body)).toMatchObject({ status: 400, body: { code: 3 } });
    },
  );

  test("the same over gRPC, and without a key", async () => {
    const { metrics } = await grpc.batchGetMetricEntries({ names: ["queue.length", "unknown"] });
    expect(metrics).toMatchObject([{ name: "queue.length", units: "{job}", isRate: true }]);
    await expect(grpc.batchGetMetricEntries({})).rejects.toMatchObject({ code: 3 });
    expect((await v1(server.url, {})("POST", batch, { name: ["a"] })).status).toBe(401);
  });
});

describe("what other parts read", () => {
  test("metrics by name, the layer of the tenant's own being TENANT", async () => {
    const found = await effectiveMetrics(sql, tenant.id, ["queue.length", "unknown", shipped, "system.uptime"]);
    expect([...found.keys()]).toEqual(["queue.length", shipped, "system.uptime"]);
    expect(found.get("queue.length")).toMatchObject({ layer: "TENANT", units: "{job}" });
    expect(found.get("system.uptime")).toMatchObject({ layer: "TENANT", defaultEntry: { layer: "DEFAULT" } });
    expect(found.get(shipped)).toMatchObject({ layer: "DEFAULT" });
  });

  test("all entity fields of a tenant", async () => {
    await json("POST", "/v1/dictionary/entity_fields", { name: "customProperties.rack" });
    const fields = await effectiveEntityFields(sql, tenant.id);
    const { body } = await json("GET", "/v1/dictionary/entity_fields");
    expect(fields.map(({ name }) => name)).toEqual(body.entityFields.map(({ name }: { name: string }) => name));
  });
});
