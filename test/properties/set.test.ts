import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { CustomPropertyService } from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const set = "/v1/modelcontext/customproperties:set";
const remove = "/v1/modelcontext/customproperties:delete";

/** A tenant with entities of these sources. */
async function tenantWith(...sources: string[]) {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const post = (path: string, body?: unknown) => call("POST", path, body);
  const models = sources.map((source) => ({ timestamp: `${Date.now()}`, dimensions: { source } }));
  if (models.length > 0) await post("/v1/data-receiver/models", { models });
  const idOf = (source: string) => idText(entityId(tenant.id, { source }));
  const ids = (...names: string[]) => ({ with_ids: { ids: names.map(idOf) } });
  const grpc = createClient(CustomPropertyService, transport(server.target, "grpc", tenant.headers));
  async function stored() {
    const rows = await sql<{ source: string; properties: object }[]>`
      select dimensions ->> 'source' as source, custom_properties as properties from entities
      where tenant_id = ${tenant.id}`;
    return Object.fromEntries(rows.map(({ source, properties }) => [source, properties]));
  }
  return { tenant, call, post, idOf, ids, grpc, stored };
}

const where = (field: string, operation: string, value?: unknown) => ({
  query: { clause: { filter: { field, operation, ...(value !== undefined && { value }) } } },
});

describe("set", () => {
  test("adds properties and replaces values, of every kind, and leaves the others", async () => {
    const { post, ids, idOf, stored } = await tenantWith("a", "b");
    const properties = { text: "x", number: 1.5, yes: true, no: false, list: ["x", 2, true], none: [], empty: "" };
    expect(await post(set, { input: ids("a"), properties })).toMatchObject({
      status: 200,
      body: { entity_ids: [idOf("a")] },
    });
    expect(await stored()).toEqual({ a: properties, b: {} });
    await post(set, { input: ids("a"), properties: { text: ["now", "a list"], more: 0 } });
    expect(await stored()).toEqual({ a: { ...properties, text: ["now", "a list"], more: 0 }, b: {} });
  });

  test("of a query changes all that match, with every way to ask", async () => {
    const { post, idOf, stored } = await tenantWith("web-1", "web-2", "db-1");
    const answer = await post(set, {
      input: where("dimensions.source", "OP_STARTS_WITH", "web"),
      properties: { p: 1 },
    });
    expect(answer.body.entity_ids.sort()).toEqual([idOf("web-1"), idOf("web-2")].sort());
    expect(await stored()).toEqual({ "web-1": { p: 1 }, "web-2": { p: 1 }, "db-1": {} });
    const not = { query: { clause: { not: where("dimensions.source", "OP_STARTS_WITH", "web").query } } };
    await post(set, { input: not, properties: { q: 2 } });
    expect(await stored()).toEqual({ "web-1": { p: 1 }, "web-2": { p: 1 }, "db-1": { q: 2 } });
  });

  test("skips unknown ids, lists each entity once, when it changed, and answers an empty list for a query without a match", async () => {
    const { post, ids, idOf } = await tenantWith("a");
    const known = idOf("a");
    const input = { with_ids: { ids: [known, "nobody", idOf("unknown"), known] } };
    expect((await post(set, { input, properties: { p: 1 } })).body).toEqual({ entity_ids: [known] });
    expect((await post(set, { input, properties: { p: 1 } })).body).toEqual({ entity_ids: [] });
    const nothing = { input: where("dimensions.source", "OP_EQUALS", "z"), properties: { p: 1 } };
    expect((await post(set, nothing)).body).toEqual({ entity_ids: [] });
    expect((await post(set, { input: ids("b"), properties: { p: 1 } })).body).toEqual({ entity_ids: [] });
  });

  test("does not bring deleted entities back", async () => {
    const { post, ids, stored } = await tenantWith("a");
    const deletion = {
      timestamp: `${Date.now()}`,
      dimensions: { source: "a" },
      metadataFields: { _svc_deleted_entity: true },
    };
    await post("/v1/data-receiver/models", { models: [deletion] });
    expect((await post(set, { input: ids("a"), properties: { p: 1 } })).body).toEqual({ entity_ids: [] });
    expect(await stored()).toEqual({ a: {} });
  });

  test("moves the update time of what it changes, and of nothing else", async () => {
    const { post, ids, tenant } = await tenantWith("a");
    await post(set, { input: ids("a"), properties: { p: 1 } });
    const version = async () =>
      (await sql`select xmin::text, updated_ms from entities where tenant_id = ${tenant.id}`)[0];
    const before = await version();
    await post(set, { input: ids("a"), properties: { p: 1 } });
    expect(await version()).toMatchObject({ updated_ms: before?.updated_ms });
    await post(set, { input: ids("a"), properties: { p: 2 } });
    expect((await version())?.updated_ms).toBeGreaterThan(before?.updated_ms);
  });

  test("takes 200 properties an entity; the 201st on any of them is code 3, and nothing is written", async () => {
    const { post, ids, stored } = await tenantWith("a", "b");
    const many = (from: number, to: number) =>
      Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`p${from + i}`, from + i]));
    expect((await post(set, { input: ids("a"), properties: many(0, 200) })).status).toBe(200);
    const before = await stored();
    const refused = await post(set, { input: ids("a", "b"), properties: { extra: 1 } });
    expect(refused).toMatchObject({ status: 400, body: { code: 3 } });
    expect(refused.body.details[0].fieldViolations[0].field).toBe("properties");
    expect((await post(set, { input: ids("b"), properties: many(0, 201) })).status).toBe(400);
    expect(await stored()).toEqual(before);
    // Those that are there may change.
    expect((await post(set, { input: ids("a", "b"), properties: many(10, 20) })).status).toBe(200);
  });

  test.each([
    ["no properties", {}, "properties"],
    ["null", { p: null }, 'properties["p"]'],
    ["an object", { p: { q: 1 } }, 'properties["p"]'],
    ["a list within a list", { p: [["q"]] }, 'properties["p"][0]'],
    ["null within a list", { p: ["q", null] }, 'properties["p"][1]'],
    ["NUL", { p: "a\0" }, 'properties["p"]'],
    ["NUL within a list", { p: ["a\0"] }, 'properties["p"][0]'],
    ["an empty name", { "": 1 }, 'properties[""]'],
    ["a name of 256 characters", { ["x".repeat(256)]: 1 }, expect.stringMatching(/^properties\["xxx/)],
    ["a control character in a name", { "a\n": 1 }, 'properties["a\\n"]'],
    ["more than 64 KiB", { p: "x".repeat(65_536) }, "properties"],
  ])("refuses %s, naming its place", async (_what, properties, field) => {
    const { post, ids, stored } = await tenantWith("a");
    const answer = await post(set, { input: ids("a"), properties });
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
    expect(answer.body.details[0].fieldViolations).toMatchObject([{ field }]);
    expect(await stored()).toEqual({ a: {} });
  });

  test("takes a name of 255 characters, whatever they are, and __proto__", async () => {
    const { post, ids, stored } = await tenantWith("a");
    const properties = JSON.parse(`{"${"😀".repeat(255)}": 1, "__proto__": 2, "constructor": 3}`);
    expect((await post(set, { input: ids("a"), properties })).status).toBe(200);
    expect(JSON.stringify(Object.entries((await stored()).a as object).sort())).toBe(
      JSON.stringify(Object.entries(properties).sort()),
    );
  });
});

describe("delete", () => {
  test("takes the named properties away, of ids and of a query", async () => {
    const { post, ids, stored } = await tenantWith("a", "b");
    await post(set, { input: ids("a", "b"), properties: { p: 1, q: 2, r: 3 } });
    expect(await post(remove, { input: ids("a"), property_keys: ["p", "q", "unknown"] })).toMatchObject({
      status: 200,
      body: {},
    });
    expect(await stored()).toEqual({ a: { r: 3 }, b: { p: 1, q: 2, r: 3 } });
    await post(remove, { input: where("dimensions.source", "OP_EXISTS"), property_keys: ["r"] });
    expect(await stored()).toEqual({ a: {}, b: { p: 1, q: 2 } });
  });

  test("without keys takes all of them away, of the selected entities", async () => {
    const { post, ids, stored } = await tenantWith("a", "b");
    await post(set, { input: ids("a", "b"), properties: { p: 1, q: 2 } });
    expect((await post(remove, { input: ids("a") })).body).toEqual({});
    expect(await stored()).toEqual({ a: {}, b: { p: 1, q: 2 } });
  });

  test("refuses keys that are present and empty or null, and says where", async () => {
    const { post, ids, stored } = await tenantWith("a");
    await post(set, { input: ids("a"), properties: { p: 1 } });
    for (const property_keys of [[], [""], null]) {
      const answer = await post(remove, { input: ids("a"), property_keys });
      expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
      expect(answer.body.message).toContain("property_keys");
    }
    expect(await stored()).toEqual({ a: { p: 1 } });
  });
});

describe.each([
  [set, { properties: { p: 1 } }, "setCustomProperties"],
  [remove, {}, "deleteCustomProperties"],
] as const)("%s answers", (path, rest, rpc) => {
  test("400, code 3: no input, no ids, a clause that breaks a rule, malformed JSON", async () => {
    const { post, grpc } = await tenantWith();
    for (const input of [
      undefined,
      {},
      { with_ids: { ids: [] } },
      { query: {} },
      { query: { clause: {} } },
      { query: { clause: { and: { clauses: [] } } } },
      { query: { clause: { filter: { field: "name", operation: "OP_REGEX", value: "(" } } } },
    ]) {
      const answer = await post(path, { input, ...rest });
      expect(answer, JSON.stringify(input)).toMatchObject({ status: 400, body: { code: 3 } });
      expect(answer.body.message).toContain("input");
    }
    expect(await post(path, "{")).toMatchObject({ status: 400, body: { code: 3 } });
    await expect(grpc[rpc]({ ...rest } as never)).rejects.toMatchObject({ code: 3 });
  });
});

test("the audit log reports how many entities were changed, and which properties", async () => {
  const { call, post, ids } = await tenantWith("a", "b");
  await post(set, { input: ids("a", "b"), properties: { owner: "canary value", site: 1 } });
  await post(remove, { input: ids("a", "b"), property_keys: ["owner"] });
  await post(remove, { input: ids("a") });
  await post(set, { input: ids("a"), properties: {} });
  const { entries } = (await call("GET", "/v1/audit-log")).body;
  const told = entries.map(({ resource, outcome }: Record<string, string>) => [resource, outcome]);
  // In the order of their text: a refused call is dated by the server's clock, the others by the database's.
  expect(told.toSorted()).toEqual([
    ["customProperty/", "INVALID_ARGUMENT"],
    ["customProperty/1 entity: all", "OK"],
    ["customProperty/2 entities: owner", "OK"],
    ["customProperty/2 entities: owner,site", "OK"],
  ]);
  expect(JSON.stringify(entries)).not.toContain("canary");
});
