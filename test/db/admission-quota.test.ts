import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { newWorld, type World } from "../support/calls.ts";
import { testServer } from "../support/server.ts";
import { paged, small, whole } from "./set-up-kinds.ts";

const server = await testServer({ BELFRY_RESOURCES_MAX: "3" }, { resourceBytesMax: 10_000 });

/** What another version of the server writes meanwhile adds to no total: ten minutes later it counts. */
const muchLater = ({ db, tenant }: World) =>
  db`update tenant_counts set counted_ms = counted_ms - 600000 where tenant_id = ${tenant.id}`;

test.each(Object.entries(whole))("%s are refused above the bounds of number and bytes", async (things, kind) => {
  const world = await newWorld(server);
  const many = `the tenant has 3 ${things} already, which BELFRY_RESOURCES_MAX allows`;
  const large = `the ${things} of the tenant would hold`;
  for (const name of ["a", "b"]) await kind.make(world, name, "x".repeat(4000));
  await expect(kind.make(world, "c", "x".repeat(4000))).rejects.toThrow(large);
  await kind.make(world, "c", "");
  await expect(kind.make(world, "d", "")).rejects.toThrow(many);
  await expect(kind.change(world, "c", "x".repeat(4000))).rejects.toThrow(large);
  await kind.change(world, "a", "short");
  await kind.change(world, "c", "x".repeat(4000));
});

const { "API clients": _made, ...none } = paged;

test.each(Object.entries(none))("%s are refused above the bound of number", async (things, make) => {
  const world = await newWorld(server);
  for (const name of ["a", "b", "c"]) await make(world, name, "");
  await expect(make(world, "d", "")).rejects.toThrow(`the tenant has 3 ${things} already`);
});

describe("updaters", () => {
  const ids = (count: number) => ({ entityInput: { clause: { withIds: { ids: ["x".repeat(count)] } } } });
  const properties = (count: number) => ({ properties: { a: "x".repeat(count) } });
  const tooLarge = expect.stringContaining("the updaters of the tenant would hold 1");

  async function updatersOf(world: World) {
    const client = world.client(CustomPropertyUpdaterService);
    const listed = async () => (await client.listCustomPropertyUpdaters({})).updaters;
    const errors = ({ results }: { results: { error: string }[] }) => results.map(({ error }) => error);
    return {
      names: async () => (await listed()).map(({ name }) => name),
      listed,
      create: async (...updaters: object[]) =>
        errors(
          await client.createCustomPropertyUpdaters({ updaters: updaters.map((each) => ({ ...small, ...each })) }),
        ),
      async change(...updaters: { name: string; properties?: JsonObject }[]) {
        const all = new Map((await listed()).map(({ name, id }) => [name, id]));
        const changed = updaters.map((each) => ({ ...small, ...each, id: all.get(each.name) ?? "" }));
        return errors(await client.replaceCustomPropertyUpdaters({ updaters: changed }));
      },
    };
  }

  test("count with their clauses and properties, item by item; what is refused takes neither name nor place", async () => {
    const { create, change, names, listed } = await updatersOf(await newWorld(server));
    const large = { name: "b", ...ids(250), ...properties(5500) };
    expect(await create({ name: "a", ...properties(5000) }, large, { name: "b" }, { name: "c" })).toEqual([
      "",
      tooLarge,
      "",
      "",
    ]);
    expect(await names()).toEqual(["a", "b", "c"]);
    // In the order sent: one that shrinks makes room for those after it.
    const before = await listed();
    expect(await change(large, { name: "c", ...properties(5500) })).toEqual([tooLarge, tooLarge]);
    expect(await listed()).toEqual(before);
    expect(await change({ name: "a" }, large, { name: "c", ...properties(5000) })).toEqual(["", "", tooLarge]);
  });

  test("are refused above the bound however many calls come at once; one above it may change to what is not larger", async () => {
    const world = await newWorld(server);
    const { create, change, listed } = await updatersOf(world);
    const calls = ["a", "b", "c", "d"].map((name) => create({ name, ...properties(4000) }));
    expect((await Promise.all(calls)).flat().sort()).toEqual(["", "", tooLarge, tooLarge]);
    const { sql } = server.database;
    const more = { a: "1".repeat(12_000) };
    await sql`update property_updaters set properties = ${JSON.stringify(more)}::text::jsonb where tenant_id = ${world.tenant.id}`;
    await muchLater(world);
    const [{ name = "" } = {}] = await listed();
    expect(await change({ name, properties: more })).toEqual([""]);
    expect(await change({ name, ...properties(12_001) })).toEqual([expect.stringContaining("would hold 24")]);
    expect(await change({ name })).toEqual([""]);
  });
});

test("API clients are refused above the bound of number", async () => {
  const world = await newWorld(server);
  const make = (name: string) =>
    world.client(ApiClientService).createApiClient({ apiClient: { name, type: 3, role: "user" } });
  const { totalCount } = await world.client(ApiClientService).listApiClients({});
  for (let i = Number(totalCount); i < 3; i++) await make(`c ${i}`);
  await expect(make("d")).rejects.toThrow("the tenant has 3 API clients already");
});

test("the names in a rule count; a tenant above a bound may still change what does not grow", async () => {
  const world = await newWorld(server);
  const { sql } = server.database;
  const long = (text: string) => text.repeat(255);
  await whole.triggers?.make(world, long("t"), "");
  const rule = { name: long("r"), triggerNames: [long("t")], description: "x".repeat(4000) };
  await world.client(RuleService).createRule({ rule });
  await sql`update rules set message = ${"y".repeat(12_000)} where tenant_id = ${world.tenant.id}`;
  await muchLater(world);
  const disable = { rule: { name: rule.name, enabled: false }, updateMask: { paths: ["enabled"] } };
  await world.client(RuleService).updateRule(disable);
  await expect(whole.rules?.change(world, rule.name, "x".repeat(4001))).rejects.toThrow("the rules of the tenant");
});
