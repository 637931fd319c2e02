import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { type Condition, holds, type ModelUpdater, PropertyModel } from "./model.ts";

const database = await testDatabase();
const { sql } = database;
const dataDir = mkdtempSync(join(tmpdir(), "belfry-model-"));
const config = readConfig({
  DATABASE_URL: database.url,
  BELFRY_DATA_DIR: dataDir,
  BELFRY_PORT: "0",
  BELFRY_PLAINTEXT: "1",
  BELFRY_SHUTDOWN_TIMEOUT: "500ms",
});
let server = await startServer(config, openLog("silent"));
afterAll(async () => {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const runs = cases(12);
const sources = ["a", "b", "c", "d", "e"];
const sites = ["north", "south"];
const names = ["web 1", "web 2", "db 1"];
const keys = ["p", "q", "r"];

/** The service, as the commands use it. */
class Real {
  readonly ids = new Map<string, string>();
  timeMs = Date.now() - 60_000;
  readonly tenant: TestTenant;
  constructor(tenant: TestTenant) {
    this.tenant = tenant;
  }

  async call(path: string, body: object) {
    const answer = await v1(server.url, this.tenant.headers)("POST", `/v1/${path}`, body);
    if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async put(source: string, metadata: object) {
    this.timeMs += 1;
    const model = { timestamp: `${this.timeMs}`, dimensions: { source }, metadataFields: metadata };
    const { failed } = await this.call("data-receiver/models", { models: [model] });
    expect(failed).toBe(0);
  }

  async change(updaters: readonly ModelUpdater[]) {
    for (const verb of ["change", "create"]) {
      const mine = updaters.filter(({ name }) => this.ids.has(name) === (verb === "change"));
      if (mine.length === 0) continue;
      const sent = mine.map((updater) => ({ ...toUpdater(updater), id: this.ids.get(updater.name) ?? "" }));
      const { results } = await this.call(`modelcontext/custompropertyupdaters:${verb}`, { updaters: sent });
      for (const [i, { id, error }] of results.entries()) {
        expect(error).toBe("");
        this.ids.set(mine[i]?.name ?? "", id);
      }
    }
  }

  /** Lets the background work come to its end. */
  async settle() {
    const endMs = performance.now() + 15_000;
    while ((await sql`select from jobs where tenant_id = ${this.tenant.id} and kind like 'properties.%'`).count > 0) {
      if (performance.now() > endMs) throw new Error("jobs are left");
      await sleep(10);
    }
  }

  async compare(model: PropertyModel) {
    await this.settle();
    const rows = await sql<{ source: string; properties: object }[]>`
      select dimensions ->> 'source' as source, custom_properties as properties from entities
      where tenant_id = ${this.tenant.id}`;
    const found = Object.fromEntries(rows.map(({ source, properties }) => [source, properties]));
    expect(found).toEqual(
      Object.fromEntries([...model.entities].map(([source, { properties }]) => [source, properties])),
    );
  }
}

// Sites are in the name: dimensions tell entities apart and never change.
function toClause(condition: Condition): object {
  const filter = (field: string, operation: string, value: unknown) => ({ filter: { field, operation, value } });
  if ("site" in condition) return filter("entity.metadataFields.site", "OP_EQUALS", condition.site);
  if ("nameStart" in condition) return filter("entity.name", "OP_STARTS_WITH", condition.nameStart);
  if ("property" in condition) {
    return filter(`entity.customProperties.${condition.property}`, "OP_EQUALS", condition.equals);
  }
  if ("not" in condition) return { not: { clause: toClause(condition.not) } };
  return { or: { clauses: condition.any.map(toClause) } };
}

const toUpdater = ({ condition, ...rest }: ModelUpdater) => ({
  ...rest,
  entity_input: { clause: toClause(condition) },
});

type Command = fc.AsyncCommand<PropertyModel, Real>;

/** A command after which everything comes to rest, so that the next one finds what the model has. */
function command(what: string, run: (model: PropertyModel, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    async run(model, real) {
      await run(model, real);
      await real.compare(model);
    },
    toString: () => what,
  };
}

const some = <T>(items: readonly T[]) => fc.uniqueArray(fc.constantFrom(...items), { minLength: 1, maxLength: 3 });
const value = fc.integer({ min: 0, max: 2 });
const properties = fc.dictionary(fc.constantFrom(...keys), value, { minKeys: 1 });
const simple: fc.Arbitrary<Condition>[] = [
  fc.record({ site: fc.constantFrom(...sites) }),
  fc.record({ nameStart: fc.constantFrom("web", "db", "") }),
];
const ofProperty = fc.record({ property: fc.constantFrom(...keys), equals: value });
const nested = (parts: fc.Arbitrary<Condition>[]): fc.Arbitrary<Condition> =>
  fc.oneof(
    ...parts,
    fc.oneof(...parts).map((not) => ({ not })),
    fc.array(fc.oneof(...parts), { minLength: 1, maxLength: 2 }).map((any) => ({ any })),
  );
const updaterOf = (parts: fc.Arbitrary<Condition>[]): fc.Arbitrary<ModelUpdater> =>
  fc.record({
    name: fc.constantFrom("one", "two", "three"),
    enabled: fc.boolean(),
    sequence: fc.integer({ min: -1, max: 1 }),
    condition: nested(parts),
    properties,
  });
const model = fc.record({
  source: fc.constantFrom(...sources),
  site: fc.constantFrom(...sites),
  name: fc.constantFrom(...names),
});
const text = JSON.stringify;

interface PutModel {
  source: string;
  site: string;
  name: string;
}

async function putAll(state: PropertyModel, real: Real, models: PutModel[]) {
  const distinct = [...new Map(models.map((each) => [each.source, each])).values()];
  await Promise.all(
    distinct.map(async ({ source, site, name }) => {
      state.put(source, site, `${name} ${site}`);
      await real.put(source, { name: `${name} ${site}`, site });
    }),
  );
}

const commands = [
  fc
    .array(model, { minLength: 1, maxLength: 4 })
    .map((models) => command(`models ${text(models)}`, (state, real) => putAll(state, real, models))),
  fc.constantFrom(...sources).map((source) =>
    command(`delete entity ${source}`, async (state, real) => {
      if (!state.entities.has(source)) return;
      state.deleteEntity(source);
      await real.put(source, { _svc_deleted_entity: true });
    }),
  ),
  fc.record({ chosen: some(sources), properties, byQuery: fc.boolean() }).map(({ chosen, properties, byQuery }) =>
    command(`set ${text(properties)} on ${chosen}`, async (state, real) => {
      const expected = state.set(chosen, properties);
      const clause = { in: { field: "dimensions.source", values: chosen } };
      const ids = chosen.map((source) => idText(entityId(real.tenant.id, { source })));
      const input = byQuery ? { query: { clause } } : { with_ids: { ids: [...ids, "unknown"] } };
      const { entity_ids } = await real.call("modelcontext/customproperties:set", { input, properties });
      expect(entity_ids).toHaveLength(expected.length);
    }),
  ),
  fc.record({ chosen: some(sources), gone: fc.option(some(keys), { nil: undefined }) }).map(({ chosen, gone }) =>
    command(`delete ${gone ?? "all"} of ${chosen}`, async (state, real) => {
      state.delete(chosen, gone);
      const input = { query: { clause: { in: { field: "dimensions.source", values: chosen } } } };
      await real.call("modelcontext/customproperties:delete", { input, ...(gone && { property_keys: gone }) });
    }),
  ),
  fc.array(updaterOf([...simple, ofProperty]), { minLength: 1, maxLength: 1 }).map((updaters) =>
    command(`updaters ${text(updaters)}`, async (state, real) => {
      state.change(updaters);
      await real.change(updaters);
    }),
  ),
  fc.record({ chosen: some(["one", "two", "three"]), enable: fc.boolean() }).map(({ chosen, enable }) =>
    command(`${enable ? "enable" : "disable"} ${chosen}`, async (state, real) => {
      const known = [...state.updaters.values()].filter(({ name }) => chosen.includes(name));
      if (known.length === 0) return;
      for (const { condition } of known) if (enable && reads(condition)) return;
      state.change(known.map((updater) => ({ ...updater, enabled: enable })));
      const ids = known.map(({ name }) => real.ids.get(name));
      await real.call("modelcontext/custompropertyupdaters:manage", { ids, action: enable ? "ENABLE" : "DISABLE" });
    }),
  ),
  fc.constantFrom("one", "two", "three").map((name) =>
    command(`delete updater ${name}`, async (state, real) => {
      if (!state.updaters.delete(name)) return;
      await real.call("modelcontext/custompropertyupdaters:delete", { ids: [real.ids.get(name)] });
      real.ids.delete(name);
    }),
  ),
  fc
    .record({
      models: fc.array(model, { minLength: 1, maxLength: 4 }),
      updater: updaterOf(simple),
      waitMs: fc.nat(300),
    })
    .map(({ models, updater, waitMs }) =>
      // Which of them comes first does not matter without conditions on properties, and where no entity leaves what the updater sets.
      command(`at once ${text(models)} and ${text(updater)}, restart after ${waitMs} ms`, async (state, real) => {
        if ([...state.updaters.values()].some(({ condition }) => reads(condition))) return;
        const before = state.updaters.get(updater.name);
        if (before?.enabled) return;
        const enabled = { ...updater, enabled: true };
        if (models.some((each) => leaves(state, each, enabled))) return;
        await Promise.all([putAll(state, real, models), real.change([enabled])]);
        state.change([enabled]);
        await sleep(waitMs);
        await restart();
      }),
    ),
  fc.constant(command("restart", restart)),
];

/** Whether an entity meets the condition of an updater, and no longer does so once a model of it is put. */
function leaves({ entities }: PropertyModel, { source, site, name }: PutModel, { condition }: ModelUpdater): boolean {
  const before = entities.get(source);
  if (before === undefined || before.deleted || !holds(condition, before)) return false;
  return !holds(condition, { ...before, site, name: `${name} ${site}` });
}

/** Whether a condition looks at properties, which other updaters may be setting just then. */
function reads(condition: Condition): boolean {
  if ("not" in condition) return reads(condition.not);
  if ("any" in condition) return condition.any.some(reads);
  return "property" in condition;
}

async function restart() {
  await server.stop();
  server = await startServer(config, openLog("silent"));
}

test("whatever is done to entities, properties and updaters, the properties are those of the model", async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 25 }), async (sequence) => {
      const real = new Real(await testTenant(sql));
      await fc.asyncModelRun(() => ({ model: new PropertyModel(), real }), sequence);
    }),
    { numRuns: runs, endOnFailure: runs < 20 },
  );
}, 300_000);
