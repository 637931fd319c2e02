import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import type { Db } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { retainEntities } from "../../src/entities/retention.ts";
import { readyUpdaters } from "../../src/properties/ready-updaters.ts";
import { anyEnabled, expectEnabled, lockSet } from "../../src/properties/updater-set.ts";
import { transport } from "../support/clients.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const base = "/v1/modelcontext/custompropertyupdaters";

async function world() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const post = (verb: string, body?: unknown) => call("POST", `${base}:${verb}`, body);
  const put = async (...sources: string[]) => {
    const models = sources.map((source) => ({ timestamp: `${Date.now()}`, dimensions: { source } }));
    await call("POST", "/v1/data-receiver/models", { models });
  };
  const set = (properties: object) =>
    call("POST", "/v1/modelcontext/customproperties:set", { input: { query: { clause: exists } }, properties });
  const settled = async () => {
    const endMs = performance.now() + 10_000;
    while ((await sql`select from jobs where tenant_id = ${tenant.id} and kind like 'properties.%'`).count > 0) {
      if (performance.now() > endMs) throw new Error("jobs are left");
      await sleep(10);
    }
  };
  async function stored() {
    await settled();
    const rows = await sql<{ source: string; properties: object }[]>`
      select dimensions ->> 'source' as source, custom_properties as properties from entities
      where tenant_id = ${tenant.id}`;
    return Object.fromEntries(rows.map(({ source, properties }) => [source, properties]));
  }
  const grpc = createClient(CustomPropertyUpdaterService, transport(server.target, "grpc", tenant.headers));
  const create = async (...updaters: object[]) =>
    (await post("create", { updaters })).body.results.map(({ id, error }: Result) => {
      expect(error).toBe("");
      return id;
    }) as string[];
  return { tenant, call, post, put, set, stored, grpc, create };
}

interface Result {
  id: string;
  error: string;
}

const exists = { filter: { field: "dimensions.source", operation: "OP_EXISTS" } };
const of = (source: string) => ({
  clause: { filter: { field: "entity.dimensions.source", operation: "OP_EQUALS", value: source } },
});
const updater = (name: string, more: object = {}) => ({
  name,
  entity_input: of("a"),
  properties: { [name]: true },
  ...more,
});
const enabled = (name: string, more: object = {}) => updater(name, { enabled: true, ...more });

describe("an updater that is enabled", () => {
  test("runs at once over all that match: when it is created, changed and enabled", async () => {
    const { post, put, stored, create } = await world();
    await put("a", "b");
    const [one = "", two = ""] = await create(enabled("one"), updater("two"));
    expect(await stored()).toEqual({ a: { one: true }, b: {} });
    await post("manage", { ids: [two], action: "ENABLE" });
    expect(await stored()).toEqual({ a: { one: true, two: true }, b: {} });
    await post("change", { updaters: [enabled("one", { id: one, entity_input: of("b"), properties: { n: 1 } })] });
    expect(await stored()).toEqual({ a: { one: true, two: true }, b: { n: 1 } });
  });

  test("runs on every entity that a model creates or changes, and on no other", async () => {
    const { post, put, set, stored, create } = await world();
    const [one = ""] = await create(enabled("one", { entity_input: { clause: prefixed(exists) } }));
    await put("a", "b");
    expect(await stored()).toEqual({ a: { one: true }, b: { one: true } });
    await set({ one: "set by hand" });
    await put("c");
    expect(await stored()).toEqual({ a: { one: "set by hand" }, b: { one: "set by hand" }, c: { one: true } });
    await post("manage", { ids: [one], action: "DISABLE" });
    await put("d");
    expect((await stored()).d).toEqual({});
  });

  test("runs on an entity that data have made before its first model, and on one that data have brought back", async () => {
    const { tenant, call, put, stored, create } = await world();
    const hourAgoMs = Date.now() - 3_600_000;
    const see = (timeMs = Date.now()) => {
      const event = { timestamp: `${timeMs}`, name: "e", dimensions: { source: "a" } };
      return call("POST", "/v1/data-receiver/events", { events: [event] });
    };
    const all = { entity_input: { clause: prefixed(exists) } };
    await create(enabled("one", all));
    // Its first run is over: it would find what data make meanwhile.
    await stored();
    await see(hourAgoMs);
    expect(await stored()).toEqual({ a: {} });
    await put("a");
    expect(await stored()).toEqual({ a: { one: true } });

    const ms = BigInt(hourAgoMs);
    await sql`update entities set liveness_ms = ${ms}, created_ms = ${ms} where tenant_id = ${tenant.id}`;
    const retention = {
      idleSec: 600,
      deletedSec: 86_400,
      known: entityCache(),
      inUse: [async (_tx: Db, _id: string, ids: readonly Buffer[]) => ids],
    };
    await transaction(sql, (tx) => retainEntities(tx, tenant.id, Buffer.alloc(0), retention, Date.now()));
    await create(enabled("two", all));
    expect(await stored()).toEqual({ a: { one: true } });
    await see();
    await put("a");
    expect(await stored()).toEqual({ a: { one: true, two: true } });
  });

  test("leaves what it has set when it is disabled or deleted", async () => {
    const { post, put, stored, create } = await world();
    await put("a");
    const ids = await create(enabled("one"), enabled("two"));
    await stored();
    await post("manage", { ids: ids.slice(0, 1), action: "DISABLE" });
    await post("delete", { ids: ids.slice(1) });
    expect(await stored()).toEqual({ a: { one: true, two: true } });
  });

  test("comes in the order of sequence, then of name; the later one wins, whichever was created last", async () => {
    const { put, stored, create } = await world();
    await put("a");
    const say = (word: string, sequence: number) => ({ sequence, properties: { p: word, [word]: 1 } });
    await create(enabled("b", say("b", 5)));
    await create(enabled("c", say("c", -1)), enabled("a", say("a", 5)));
    expect(await stored()).toEqual({ a: { p: "b", a: 1, b: 1, c: 1 } });
  });

  test("sees what earlier ones have set", async () => {
    const { put, stored, create } = await world();
    await put("a", "b");
    const clause = { filter: { field: "entity.customProperties.tier", operation: "OP_EQUALS", value: 1 } };
    await create(
      enabled("1 tier", { sequence: 1, properties: { tier: 1 } }),
      enabled("2 paged", { sequence: 2, properties: { paged: true }, entity_input: { clause } }),
    );
    expect(await stored()).toEqual({ a: { tier: 1, paged: true }, b: {} });
  });

  test("leaves an entity alone that it would bring above 200 properties; others get theirs", async () => {
    const { put, set, stored, create } = await world();
    await put("a");
    await set(Object.fromEntries(Array.from({ length: 199 }, (_, i) => [`p${i}`, i])));
    await create(enabled("1", { properties: { x: 1, y: 1 } }), enabled("2", { properties: { z: 1 } }));
    const properties = (await stored()).a as Record<string, unknown>;
    expect(Object.keys(properties)).toHaveLength(200);
    expect(properties).toMatchObject({ z: 1 });
  });

  test("runs on what a model changes while it is being enabled, however the two fall together", async () => {
    const { post, put, stored, create } = await world();
    for (let round = 0; round < 12; round++) {
      const sources = [`${round} x`, `${round} y`];
      const clause = { filter: { field: "entity.dimensions.source", operation: "OP_STARTS_WITH", value: `${round} ` } };
      const making = create(enabled(`${round}`, { entity_input: { clause }, properties: { round } }));
      const [ids] = await Promise.all([making, ...sources.map((source) => put(source))]);
      const found = await stored();
      for (const source of sources) expect(found[source], source).toEqual({ round });
      await post("delete", { ids });
    }
  });
});

test("an updater is enabled once what has found none enabled is committed", async () => {
  const { id } = await testTenant(sql);
  const order: string[] = [];
  await transaction(sql, (tx) => anyEnabled(tx, id));
  let enabling = Promise.resolve();
  await transaction(sql, async (tx) => {
    expect(await anyEnabled(tx, id)).toBe(false);
    await expectEnabled(sql, id);
    enabling = transaction(sql, async (other) => {
      await lockSet(other, id, true);
      order.push("enabled");
    });
    await expect.poll(async () => (await lockWaits(sql)) + order.length).toBeGreaterThan(0);
    order.push("committed");
  });
  await enabling;
  expect(order).toEqual(["committed", "enabled"]);
});

/** The same clause with the keys that updaters ask for. */
function prefixed<T extends { filter: { field: string } }>(clause: T): T {
  return { ...clause, filter: { ...clause.filter, field: `entity.${clause.filter.field}` } };
}

describe("results", () => {
  test("are in the order sent; an item that fails fails alone, with the reason, and has no id when it was to be created", async () => {
    const { post, grpc } = await world();
    const { body, status } = await post("create", {
      updaters: [
        updater("one"),
        updater("", { properties: { p: 1 } }),
        updater("one"),
        { name: "no query", properties: { p: 1 } },
        { name: "no clause", entity_input: {}, properties: { p: 1 } },
        updater("no properties", { properties: {} }),
        updater("null", { properties: { p: null } }),
        updater("empty and", { entity_input: { clause: { and: { clauses: [] } } } }),
        updater("not prefixed", { entity_input: { clause: { not: { clause: { and: { clauses: [exists] } } } } } }),
        updater("too long".repeat(40)),
        updater("tags", { tags: [""] }),
        updater("two"),
      ],
    });
    expect(status).toBe(200);
    const errors = body.results.map(({ error }: Result) => error);
    expect(errors).toEqual([
      "",
      "updaters[1].name: is required",
      'a custom property updater named "one" exists already',
      "updaters[3].entity_input: is required",
      "updaters[4].entity_input.clause: is required",
      "updaters[5].properties: must have at least 1 property",
      expect.stringContaining('updaters[6].properties["p"]: must be a string'),
      expect.stringContaining("updaters[7].entity_input.clause.and"),
      "updaters[8].entity_input.clause.not.clause.and.clauses[0].filter.field: must begin with entity.",
      expect.stringContaining("updaters[9].name: must be at most 255 characters"),
      expect.stringContaining("updaters[10].tags[0]"),
      "",
    ]);
    for (const [i, { id }] of body.results.entries()) expect(id === "", `${i}`).toBe(errors[i] !== "");
    const { updaters } = await grpc.listCustomPropertyUpdaters({});
    expect(updaters.map(({ name }) => name)).toEqual(["one", "two"]);
  });

  test("an item that holds too much fails alone, too", async () => {
    const { post } = await world();
    const nested = (depth: number): object => (depth === 0 ? exists : { not: { clause: nested(depth - 1) } });
    const query = (clause: object) => ({ entity_input: { clause } });
    const { body, status } = await post("create", {
      updaters: [
        updater("good"),
        updater("tags", { tags: Array(101).fill("t") }),
        updater("wide", query({ and: { clauses: Array(1000).fill(exists) } })),
        updater("deep", query(nested(32))),
        updater("long", query({ in: { field: "entity.name", values: Array(10_001).fill("a") } })),
        updater("large", { properties: { p: Array(40_000).fill(0) } }),
        updater("good, too"),
      ],
    });
    expect(status).toBe(200);
    expect(body.results.map(({ error }: Result) => error)).toEqual([
      "",
      "updaters[1].tags: must have at most 100 items",
      "updaters[2].entity_input.clause.and.clauses[999]: must not be more than the 1000th clause",
      expect.stringMatching(
        /^updaters\[3\]\.entity_input(\.clause\.not){32}\.clause: must not lie deeper than 32 clauses$/,
      ),
      "updaters[4].entity_input.clause.in.values: must have at most 10000 items",
      expect.stringContaining("updaters[5].properties: must hold at most 32768 values"),
      "",
    ]);
  });

  test("of a change: it replaces the whole; absent members become empty, and the updater disabled", async () => {
    const { post, create } = await world();
    const full = enabled("one", { description: "d", sequence: 3, tags: ["t"] });
    const [one = "", two = ""] = await create(full, updater("two"));
    const change = async (...updaters: object[]) =>
      (await post("change", { updaters })).body.results.map(({ id, error }: Result) => [id, error]);
    expect(await change({ id: one, ...updater("renamed") })).toEqual([[one, ""]]);
    const [stored] = (await post("list")).body.updaters;
    expect(stored).toEqual({
      id: one,
      ...updater("renamed"),
      description: "",
      enabled: false,
      sequence: 0,
      tags: [],
    });
    expect(
      await change(
        updater("no id"),
        { id: "unknown", ...updater("x") },
        { id: one, ...updater("two") },
        { id: one, name: "two" },
        { id: two, ...updater("free now") },
        { id: one, ...updater("two") },
      ),
    ).toEqual([
      ["", "updaters[0].id: is required"],
      ["unknown", 'no custom property updater found for "unknown"'],
      [one, 'a custom property updater named "two" exists already'],
      [one, "updaters[3].entity_input: is required; updaters[3].properties: is required"],
      [two, ""],
      [one, ""],
    ]);
  });

  test("of deleting, enabling and disabling name unknown ids", async () => {
    const { post, create } = await world();
    const [one = "", two = ""] = await create(updater("one"), updater("two"));
    const missing = 'no custom property updater found for "unknown"';
    for (const action of ["ENABLE", 2]) {
      expect((await post("manage", { ids: [one, "unknown"], action })).body.results).toEqual([
        { id: one, error: "" },
        { id: "unknown", error: missing },
      ]);
    }
    expect((await post("delete", { ids: [two, "unknown", two] })).body.results).toEqual([
      { id: two, error: "" },
      { id: "unknown", error: missing },
      { id: two, error: `no custom property updater found for "${two}"` },
    ]);
    expect((await post("list")).body.updaters).toHaveLength(1);
  });

  test("two who create the same name at once: one of them is reported", async () => {
    const { post } = await world();
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => post("create", { updaters: [updater("one"), updater("two")] })),
    );
    for (const i of [0, 1]) expect(answers.filter(({ body }) => body.results[i].error === "")).toHaveLength(1);
  });
});

test("the expressions of all updaters of a request count together", async () => {
  const { post } = await world();
  const filter = {
    filter: { field: "entity.dimensions.source", operation: "OP_REGEX", value: "[ab]{250}[ab]{250}[ab]{250}[ab]{150}" },
  };
  const updaters = ["a", "b", "c"].map((name) => ({
    name,
    entity_input: { clause: { and: { clauses: Array(5).fill(filter) } } },
    properties: { owner: name },
  }));
  const { body } = await post("create", { updaters });
  expect(body.results.map(({ error }: Result) => error)).toEqual([
    "",
    "",
    expect.stringContaining("the expressions are too complex together"),
  ]);
});

describe("the list", () => {
  test("comes by name, 50 a page unless a limit is given, and says whether there is more", async () => {
    const { post, create } = await world();
    const names = Array.from({ length: 120 }, (_, i) => `u ${String(i).padStart(3, "0")}`);
    await create(...names.map((name) => updater(name)).reverse());
    for (const limit of [undefined, 1000, 7]) {
      const found: string[] = [];
      let page_input: object | undefined = limit === undefined ? undefined : { limit };
      for (;;) {
        const { body } = await post("list", { ...(page_input && { page_input }) });
        found.push(...body.updaters.map(({ name }: { name: string }) => name));
        expect(body.updaters.length).toBeLessThanOrEqual(limit ?? 50);
        if (!body.page_info.has_next) break;
        page_input = { cursor: body.page_info.cursor, ...(limit !== undefined && { limit }) };
      }
      expect(found).toEqual(names);
    }
  });

  test("goes back from a cursor, too; an empty one has no cursor", async () => {
    const { post, create } = await world();
    expect((await post("list", {})).body).toEqual({ updaters: [], page_info: { has_next: false, cursor: "" } });
    await create(...["a", "b", "c", "d"].map((name) => updater(name)));
    const first = await post("list", { page_input: { limit: 3 } });
    const page_input = { limit: 1, cursor: first.body.page_info.cursor, direction: "DIRECTION_BACKWARD" };
    const back = await post("list", { page_input });
    expect(back.body.updaters.map(({ name }: { name: string }) => name)).toEqual(["b"]);
    expect(back.body.page_info.has_next).toBe(true);
    const last = await post("list", { page_input: { ...page_input, cursor: back.body.page_info.cursor } });
    expect(last.body.updaters.map(({ name }: { name: string }) => name)).toEqual(["a"]);
    expect(last.body.page_info.has_next).toBe(false);
  });
});

describe("updaters that are ready are held in memory", () => {
  const large = (name: string) => enabled(name, { properties: { [name]: "x".repeat(3000) } });

  test("until one changes", async () => {
    const { tenant, post, create } = await world();
    const ready = readyUpdaters();
    const [id = ""] = await create(enabled("one"), enabled("two"));
    const before = await ready(sql, tenant.id);
    expect(before.map(({ properties }) => properties)).toEqual([{ one: true }, { two: true }]);
    expect(await ready(sql, tenant.id)).toBe(before);
    await post("manage", { ids: [id], action: "DISABLE" });
    expect((await ready(sql, tenant.id)).map(({ properties }) => properties)).toEqual([{ two: true }]);
  });

  test.each([
    ["characters", { weightMax: 8500 }],
    ["tenants", { tenantsMax: 2 }],
  ])("up to a bound of %s; those of the tenant least in use go, never those that are asked for", async (_, max) => {
    const ready = readyUpdaters(max);
    const [a = "", b = "", c = ""] = await Promise.all(
      ["a", "b", "c"].map(async (name) => {
        const { tenant, create } = await world();
        await create(large(name));
        return tenant.id;
      }),
    );
    const [ofA, ofB] = [await ready(sql, a), await ready(sql, b)];
    expect(await ready(sql, a)).toBe(ofA);
    await ready(sql, c);
    expect(await ready(sql, a)).toBe(ofA);
    const again = await ready(sql, b);
    expect(again).not.toBe(ofB);
    expect(await ready(sql, b)).toBe(again);
  });

  test("also where those of one tenant exceed the bound alone", async () => {
    const { tenant, create } = await world();
    await create(large("one"));
    const ready = readyUpdaters({ weightMax: 10 });
    expect(await ready(sql, tenant.id)).toBe(await ready(sql, tenant.id));
  });
});

const verbs = ["create", "change", "delete", "manage", "list"] as const;
const rpcs = {
  create: "createCustomPropertyUpdaters",
  change: "replaceCustomPropertyUpdaters",
  delete: "deleteCustomPropertyUpdaters",
  manage: "switchCustomPropertyUpdaters",
  list: "listCustomPropertyUpdaters",
} as const;
const good = {
  create: { updaters: [updater("one")] },
  change: { updaters: [updater("one", { id: "unknown" })] },
  delete: { ids: ["unknown"] },
  manage: { ids: ["unknown"], action: "ENABLE" },
  list: {},
};

describe.each(verbs)("%s answers", (verb) => {
  const grpcOf = (headers: Record<string, string>) =>
    createClient(CustomPropertyUpdaterService, transport(server.target, "grpc", headers))[rpcs[verb]] as (
      request: object,
    ) => Promise<unknown>;
  test.runIf(verb !== "list")("400, code 3: no items, malformed JSON, an unknown action", async () => {
    const { post, tenant } = await world();
    for (const body of [{}, { updaters: [], ids: [] }, "{", { ...good[verb], nope: 1 }, { ids: ["a"], action: "X" }]) {
      expect(await post(verb, body), JSON.stringify(body)).toMatchObject({ status: 400, body: { code: 3 } });
    }
    if (verb === "manage") expect((await post(verb, { ids: ["a"] })).status).toBe(400);
    await expect(grpcOf(tenant.headers)({})).rejects.toMatchObject({ code: 3 });
  });
});

test("an updater whose id holds NUL is refused alone", async () => {
  const { post, create } = await world();
  const [id = ""] = await create(updater("one"));
  const updaters = [updater("one", { id: "a\0b" }), updater("two", { id })];
  const { status, body } = await post("change", { updaters });
  expect(status).toBe(200);
  expect(body.results.map(({ error }: Result) => error)).toEqual(["updaters[0].id: must not contain NUL", ""]);
});

test("the audit log reports how many items of how many went well, and their ids", async () => {
  const { call, post, create } = await world();
  const [id = ""] = await create(updater("one"));
  await post("change", { updaters: [updater("one", { id }), updater("two", { id: "unknown" })] });
  await post("manage", { ids: [id], action: "DISABLE" });
  await post("delete", { ids: [id, id] });
  const { entries } = (await call("GET", "/v1/audit-log")).body;
  expect(entries.map(({ resource }: { resource: string }) => resource)).toEqual(
    ["1 of 2", "1 of 1", "1 of 2", "1 of 1"].map((count) => `customPropertyUpdater/${count}: ${id}`),
  );
});
