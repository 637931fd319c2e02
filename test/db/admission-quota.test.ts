import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { eventTrigger, webhook } from "../notifications/samples.ts";
import { newWorld, type World } from "../support/calls.ts";
import { testServer } from "../support/server.ts";

const server = await testServer({ BELFRY_RESOURCES_MAX: "3" }, { resourceBytesMax: 10_000 });

/** What another version of the server writes meanwhile adds to no total: ten minutes later it counts. */
const muchLater = ({ db, tenant }: World) =>
  db`update tenant_counts set counted_ms = counted_ms - 600000 where tenant_id = ${tenant.id}`;

type Make = (world: World, name: string, description: string) => Promise<unknown>;

const small = { entityInput: { clause: { withIds: { ids: ["x"] } } }, properties: { a: "b" } };

function goodOf({ results }: { results: { error: string }[] }): void {
  if (results[0]?.error !== "") throw new Error(results[0]?.error);
}

const createUpdater = async ({ client }: World, updater: object) =>
  goodOf(
    await client(CustomPropertyUpdaterService).createCustomPropertyUpdaters({ updaters: [{ ...small, ...updater }] }),
  );

/** Kinds of which all may be read at once: bounded by number and by bytes. */
const whole: Record<string, { make: Make; change: Make }> = {
  triggers: {
    make: ({ client }, name, description) =>
      client(TriggerService).createTrigger({ trigger: { name, description, type: eventTrigger("x") } }),
    change: ({ client }, name, description) =>
      client(TriggerService).updateTrigger({ trigger: { name, description }, updateMask: { paths: ["description"] } }),
  },
  destinations: {
    make: ({ client }, name, description) =>
      client(DestinationService).createDestination({ destination: { name, description, type: webhook("x") } }),
    change: ({ client }, name, description) =>
      client(DestinationService).replaceDestination({ destination: { name, description, type: webhook("x") } }),
  },
  rules: {
    make: ({ client }, name, description) => client(RuleService).createRule({ rule: { name, description } }),
    change: ({ client }, name, description) =>
      client(RuleService).updateRule({ rule: { name, description }, updateMask: { paths: ["description"] } }),
  },
  "dictionary entity field entries": {
    make: ({ client }, name, description) =>
      client(EntityFieldDictionaryService).createEntityField({ entityField: { name, description } }),
    change: ({ client }, name, description) =>
      client(EntityFieldDictionaryService).updateEntityField({
        entityField: { name, description },
        updateMask: { paths: ["description"] },
      }),
  },
  "dictionary metric entries": {
    make: ({ client }, name, description) =>
      client(MetricDictionaryService).createMetricEntry({ metric: { name, description } }),
    change: ({ client }, name, description) =>
      client(MetricDictionaryService).updateMetricEntry({
        metric: { name, description },
        updateMask: { paths: ["description"] },
      }),
  },
  "dictionary event field entries": {
    make: ({ client }, name, description) =>
      client(EventFieldDictionaryService).createEventField({ eventField: { name, description } }),
    change: ({ client }, name, description) =>
      client(EventFieldDictionaryService).updateEventField({
        eventField: { name, description },
        updateMask: { paths: ["description"] },
      }),
  },
  updaters: {
    make: (world, name, description) => createUpdater(world, { name, description }),
    async change({ client }, name, description) {
      const updaters = client(CustomPropertyUpdaterService);
      const { updaters: all } = await updaters.listCustomPropertyUpdaters({});
      const { id = "" } = all.find((each) => each.name === name) ?? {};
      const changed = { ...small, id, name, description };
      goodOf(await updaters.replaceCustomPropertyUpdaters({ updaters: [changed] }));
    },
  },
  credentials: {
    make: ({ client }, name, description) =>
      client(CredentialService).createCredential({ info: { name, description, type: "teamChat" } }),
    async change({ client }, name, description) {
      const { credentials } = await client(CredentialService).listCredentials({});
      const { id = "" } = credentials.find(({ info }) => info?.name === name) ?? {};
      await client(CredentialService).replaceCredential({ id, info: { name, description, type: "teamChat" } });
    },
  },
};

/** Kinds that are always listed by pages, or not at all: bounded by number. */
const paged: Record<string, Make> = {
  "maintenance windows": ({ client }, name) =>
    client(MaintenanceWindowService).createMaintenanceWindow({
      specification: {
        name,
        runMode: 1,
        maintenanceState: 3,
        schedule: { start: BigInt(Date.now()), duration: 60_000n },
        target: { case: "withIds", value: { ids: ["x"] } },
      },
    }),
  "user groups": ({ client }, name) =>
    client(UserGroupService).createUserGroup({ group: { name, cloudRoles: ["user"] } }),
  "user accounts": ({ client }, name) =>
    client(UserAccountService).createUserAccount({ user: { email: `${name}@example.com`, password: "Abc1!Def2" } }),
};

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

test.each(Object.entries(paged))("%s are refused above the bound of number", async (things, make) => {
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
