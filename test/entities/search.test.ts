import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { entityId, idText } from "../../src/entities/identity.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;

// biome-ignore lint/suspicious/noExplicitAny: requests and answers of any shape
type Json = any;

async function world() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  let timeMs = Date.now();
  async function put(...models: { dimensions: Json; metadataFields?: Json }[]) {
    timeMs += 1;
    const answer = await call("POST", "/v1/data-receiver/models", {
      detailedResponse: true,
      models: models.map((model) => ({ timestamp: timeMs, ...model })),
    });
    expect(answer.status).toBe(200);
    return answer.body;
  }
  const search = (search_input: Json, more: Json = {}) =>
    call("POST", "/v1/modelcontext/entities:search", { search_input, ...more });
  async function names(search_input: Json): Promise<string[]> {
    const { status, body } = await search(search_input);
    expect(status, JSON.stringify(body)).toBe(200);
    return body.entities.entities.map(({ name }: Json) => name);
  }
  const idOf = (dimensions: Record<string, string>) => idText(entityId(tenant.id, dimensions));
  const set = (ids: string[], properties: Json) =>
    call("POST", "/v1/modelcontext/customproperties:set", { input: { with_ids: { ids } }, properties });
  return { tenant, call, put, search, names, idOf, set };
}

const every = { query: { clause: { filter: { field: "name", operation: "OP_EXISTS" } } } };
const equals = (field: string, value: unknown) => ({
  query: { clause: { filter: { field, operation: "OP_EQUALS", value } } },
});
const host = (source: string, metadataFields: Json = {}) => ({
  dimensions: { source },
  metadataFields: { name: source, ...metadataFields },
});

describe("an entity in an answer", () => {
  test("has all fields in their types", async () => {
    const { put, search, idOf, set, tenant } = await world();
    const parent = idOf({ source: "rack" });
    await put({
      dimensions: { source: "web-1", zone: "b" },
      metadataFields: {
        name: "Web 1",
        type: "Host",
        device: ["d1", 2],
        parent: "source=rack",
        impactFromDimensions: ["source=rack", "no pair"],
        _orgs_location: ["/Earth/North"],
        productionState: 300,
        priority: 5,
        note: { deep: [1, true] },
      },
    });
    const id = idOf({ source: "web-1", zone: "b" });
    await set([id], { owner: "ann", cores: 8, labels: ["a", 1, true] });
    const fields = ["name", "zone", "note", "customProperties.labels", "priority", "coreProperties.device", "nowhere"];
    const { body } = await search(equals("id", id), { fields });
    expect(body.entities.entities).toEqual([
      {
        id,
        factIds: [id],
        schemaIds: ["Base.Entity", "Host"],
        name: "Web 1",
        timestamp: expect.stringMatching(/^\d{13}$/),
        tenant: tenant.name,
        fields: {
          name: "Web 1",
          zone: "b",
          note: { deep: [1, true] },
          "customProperties.labels": ["a", 1, true],
          priority: 5,
          "coreProperties.device": ["d1", "2"],
        },
        displayName: "Web 1",
        dimensions: { source: "web-1", zone: "b" },
        coreProperties: {
          source: ["web-1"],
          zone: ["b"],
          device: ["d1", "2"],
          parent: ["source=rack"],
          name: ["Web 1"],
          _orgs_location: ["/Earth/North"],
          _svc_parent_entity_id: [parent],
          _svc_impactedBy: [parent],
          _svc_direct_entity_id: [id],
          _svc_tenant_id: [tenant.id],
          _svc_schemaIds: ["Base.Entity", "Host"],
        },
        createTime: expect.stringMatching(/^\d{13}$/),
        updateTime: expect.stringMatching(/^\d{13}$/),
        productionState: "300",
        priority: "5",
        livenessTime: expect.stringMatching(/^\d{8}[0-9]+$/),
        customProperties: { owner: "ann", cores: 8, labels: ["a", 1, true] },
      },
    ]);
    expect(Number(body.entities.entities[0].livenessTime) % 60_000).toBe(0);
    expect(body.pageInfo).toMatchObject({ count: "1", totalCount: "1", pending: "PENDING_FALSE" });
  });

  test("without custom properties and chosen fields has null for both, and production and 3 for what no model says", async () => {
    const { put, search } = await world();
    await put(host("plain"));
    const { body } = await search(every);
    expect(body.entities.entities).toMatchObject([
      { fields: null, customProperties: null, productionState: "1000", priority: "3", schemaIds: ["Base.Entity"] },
    ]);
    expect(body.entities.groups ?? []).toEqual([]);
  });

  test("a state or priority that is no number in its bounds fails its model alone", async () => {
    const { put, names } = await world();
    const { failedModels } = await put(
      host("good"),
      host("a", { productionState: "300" }),
      host("b", { priority: 6 }),
      host("c", { priority: 1.5 }),
    );
    expect(failedModels.map(({ error }: Json) => error)).toEqual([
      "models[1].metadataFields.productionState: must be a whole number",
      "models[2].metadataFields.priority: must be a whole number from 0 to 5",
      "models[3].metadataFields.priority: must be a whole number from 0 to 5",
    ]);
    expect(await names(every)).toEqual(["good"]);
  });
});

describe("a search", () => {
  test("finds what is deleted no more, until a newer model revives it", async () => {
    const { put, names } = await world();
    await put(host("a"), host("b"));
    await put({ dimensions: { source: "a" }, metadataFields: { _svc_deleted_entity: true } });
    expect(await names(every)).toEqual(["b"]);
    expect(await names(equals("dimensions.source", "a"))).toEqual([]);
    await put(host("a"));
    expect(await names(every)).toEqual(["a", "b"]);
  });

  test("by a bare key means the dimension, else the metadata field", async () => {
    const { put, names } = await world();
    await put(host("a"), { dimensions: { n: "2" }, metadataFields: { name: "b", source: "x", zone: "z" } });
    expect(await names(equals("source", "a"))).toEqual(["a"]);
    expect(await names(equals("source", "x"))).toEqual(["b"]);
    expect(await names(equals("zone", "z"))).toEqual(["b"]);
    expect(await names(equals("n", "2"))).toEqual(["b"]);
    expect(await names(equals("coreProperties.source", "x"))).toEqual(["b"]);
    expect(await names(equals("coreProperties.zone", "z"))).toEqual([]);
  });

  test("finds children by their parent, whether it is named by id or by dimensions", async () => {
    const { put, names, idOf } = await world();
    const parent = idOf({ source: "rack" });
    await put(
      host("rack"),
      host("a", { parent }),
      host("b", { parent: "source=rack" }),
      host("c", { parent: "nobody" }),
    );
    expect(await names(equals("coreProperties._svc_parent_entity_id", parent))).toEqual(["a", "b"]);
  });

  test("orders numbers, texts, booleans, a list by its first element, and what has none last, both ways", async () => {
    const { put, names, idOf, set } = await world();
    const values: Record<string, unknown> = {
      n10: 10,
      n9: 9,
      list: [9.5, "z"],
      t: "10",
      t2: "Z",
      t3: "a",
      yes: true,
      no: false,
    };
    await put(host("none"), ...Object.keys(values).map((name) => host(name)));
    for (const [name, p] of Object.entries(values))
      expect((await set([idOf({ source: name })], { p })).status).toBe(200);
    const ascending = ["n9", "list", "n10", "t", "t2", "t3", "no", "yes"];
    const by = (order: unknown, field: string) => ({ ...every, sortby: [{ field_kind: 3, field, order }] });
    expect(await names(by(0, "p"))).toEqual([...ascending, "none"]);
    expect(await names(by("ORDER_DESCENDING", "customProperties.p"))).toEqual([...ascending.toReversed(), "none"]);
  });

  test("sorts by each kind of field, in the order of the keys, then by name", async () => {
    const { put, names } = await world();
    await put(
      { dimensions: { a: "2", b: "1" }, metadataFields: { name: "w", m: 1, priority: 1 } },
      { dimensions: { a: "1", b: "1" }, metadataFields: { name: "x", m: 3, priority: 2 } },
      { dimensions: { a: "1", b: "2" }, metadataFields: { name: "y", device: "d" } },
      { dimensions: { a: "3", b: "2" }, metadataFields: { name: "z", m: 2, device: "c" } },
    );
    const by = (...sortby: Json[]) => names({ ...every, sortby });
    expect(
      await by({ field_kind: 2, field: "a" }, { field_kind: "FIELD_KIND_DIMENSION", field: "dimensions.b", order: 1 }),
    ).toEqual(["y", "x", "w", "z"]);
    expect(await by({ field_kind: 4, field: "m" })).toEqual(["w", "z", "x", "y"]);
    expect(await by({ field_kind: 1, field: "device", order: 1 })).toEqual(["y", "z", "w", "x"]);
    expect(await by({ field: "name", order: 1 })).toEqual(["z", "y", "x", "w"]);
    expect(await by({ field: "priority" })).toEqual(["w", "x", "y", "z"]);
    expect(await by({ field: "nowhere" })).toEqual(["w", "x", "y", "z"]);
  });

  test("groups by fields, the largest first; a list counts in each of its elements, and what has none is null", async () => {
    const { put, search, idOf, set } = await world();
    await put(
      { dimensions: { zone: "a", n: "1" } },
      { dimensions: { zone: "a", n: "2" } },
      { dimensions: { zone: "b", n: "3" } },
      { dimensions: { n: "4" } },
    );
    await set([idOf({ zone: "a", n: "1" })], { label: ["x", "y", "x"] });
    await set([idOf({ zone: "b", n: "3" })], { label: "x" });
    const grouped = async (...fields: string[]) => {
      const { body } = await search({
        ...every,
        group_by: fields.map((field) => ({ field })),
        page_input: { limit: 1 },
      });
      expect(body.entities.entities).toHaveLength(1);
      return body.entities.groups.map(({ values, count }: Json) => [...values, count]);
    };
    expect(await grouped("dimensions.zone")).toEqual([
      ["a", "2"],
      ["b", "1"],
      [null, "1"],
    ]);
    expect(await grouped("customProperties.label")).toEqual([
      ["x", "2"],
      [null, "2"],
      ["y", "1"],
    ]);
    expect(await grouped("zone", "customProperties.label")).toEqual(
      expect.arrayContaining([
        ["a", "x", "1"],
        ["a", "y", "1"],
        ["b", "x", "1"],
        ["a", null, "1"],
        [null, null, "1"],
      ]),
    );
    expect(await grouped("priority")).toEqual([[3, "4"]]);
  });
});

describe("an invalid search", () => {
  test("is refused with the path of what is wrong", async () => {
    const { search, call, put } = await world();
    await put(host("a"), host("b"), host("c"));
    const wrong = async (search_input: Json, path: string) =>
      expect(await search(search_input)).toMatchObject({
        status: 400,
        body: { code: 3, message: expect.stringContaining(path) },
      });
    expect((await call("POST", "/v1/modelcontext/entities:search", {})).body).toMatchObject({ code: 3 });
    await wrong({}, "search_input.query");
    await wrong({ query: {} }, "search_input.query.clause");
    await wrong({ query: { clause: {} } }, "search_input.query.clause");
    await wrong({ ...every, sortby: [{ field_kind: 9, field: "a" }] }, "search_input.sortby[0].field_kind");
    await wrong({ ...every, sortby: [{}] }, "search_input.sortby[0].field");
    await wrong({ ...every, group_by: [{}] }, "search_input.group_by[0].field");
    await wrong({ ...every, page_input: { limit: -1 } }, "search_input.page_input.limit");
  });

  test("a cursor of another query, tenant or order, and a damaged one, are refused", async () => {
    const [one, other] = [await world(), await world()];
    for (const { put } of [one, other]) await put(host("a"), host("b"), host("c"));
    const { body } = await one.search({ ...every, page_input: { limit: 1 } });
    const cursor = body.pageInfo.endCursor;
    const page_input = { limit: 1, cursor };
    expect((await one.search({ ...every, page_input })).status).toBe(200);
    const refused = {
      status: 400,
      body: { code: 3, message: expect.stringContaining("search_input.page_input.cursor") },
    };
    expect(await other.search({ ...every, page_input })).toMatchObject(refused);
    expect(await one.search({ ...equals("name", "a"), page_input })).toMatchObject(refused);
    expect(await one.search({ ...every, sortby: [{ field: "name" }], page_input })).toMatchObject(refused);
    expect(await one.search({ ...every, page_input: { cursor: `${cursor}A` } })).toMatchObject(refused);
    expect(await one.search({ ...every, page_input: { cursor: "nonsense" } })).toMatchObject(refused);
  });
});

/** All pages of a search, one way; between two of them `meanwhile` is done. */
async function pages(
  search: (input: Json) => Promise<Json>,
  query: Json,
  direction: string,
  limit = 7,
  meanwhile: () => Promise<void> = async () => {},
) {
  const found: Json[] = [];
  let cursor = "";
  for (;;) {
    const { status, body } = await search({ ...query, page_input: { limit, direction, ...(cursor && { cursor }) } });
    expect(status, JSON.stringify(body)).toBe(200);
    found.push(body);
    const back = direction === "DIRECTION_BACKWARD";
    if (!(back ? body.pageInfo.hasPrev : body.pageInfo.hasNext)) return found;
    cursor = back ? body.pageInfo.startCursor : body.pageInfo.endCursor;
    await meanwhile();
  }
}

describe("a search for ids", () => {
  const hosts = ["a", "b", "c", "d", "e"];
  const withIds = (ids: string[]) => ({ query: { clause: { withIds: { ids } } } });

  test("finds each living entity of the tenant once, whatever else is asked for", async () => {
    const { put, search, names, idOf } = await world();
    const other = await world();
    await put(...hosts.map((name) => host(name, { rack: name < "c" ? "r1" : "r2" })), host("gone"));
    await put({ dimensions: { source: "gone" }, metadataFields: { _svc_deleted_entity: true } });
    await other.put(host("foreign"));
    const ids = hosts.map((source) => idOf({ source }));
    const wanted = [
      ...ids.slice(0, 4), ids[0], idOf({ source: "gone" }), other.idOf({ source: "foreign" }), idOf({ source: "unknown" }), "nonsense",
    ] as string[]; // biome-ignore format: a list
    expect(await names(withIds(wanted))).toEqual(["a", "b", "c", "d"]);
    expect(await names({ ...withIds(wanted), sortby: [{ field: "id", order: 1 }] }), String(ids)).toEqual(
      ["a", "b", "c", "d"].sort((x, y) => (idOf({ source: x }) < idOf({ source: y }) ? 1 : -1)),
    );
    const { body } = await search({ ...withIds(wanted), group_by: [{ field: "rack" }] });
    expect(body.entities.groups).toEqual([
      { values: ["r1"], count: "2" },
      { values: ["r2"], count: "2" },
    ]);
    expect(await names(withIds([]))).toEqual([]);
    expect(await names(withIds(["nonsense"]))).toEqual([]);
  });

  test("are counted, and grouped, for the first page alone", async () => {
    const { put, search } = await world();
    await put(...hosts.map((source) => host(source, { rack: "r1" })));
    const asked = {
      query: { clause: { in: { field: "dimensions.source", values: [...hosts, "later"] } } },
      group_by: [{ field: "rack" }],
    };
    const { body: first } = await search({ ...asked, page_input: { limit: 2 } });
    expect(first.entities.groups).toEqual([{ values: ["r1"], count: String(hosts.length) }]);
    await put(host("later", { rack: "r1" }));
    const cursor = first.pageInfo.endCursor;
    const { body: second } = await search({ ...asked, page_input: { limit: 2, cursor } });
    expect(second.pageInfo).toMatchObject({ totalCount: String(hosts.length), count: "2", hasPrev: true });
    expect(second.entities.groups).toEqual([]);
    const back = { limit: 2, cursor: second.pageInfo.startCursor, direction: "DIRECTION_BACKWARD" };
    const { body: again } = await search({ ...asked, page_input: back });
    expect(again.entities.entities).toEqual(first.entities.entities);
  });

  test("pages forward and backward", async () => {
    const { put, search, idOf } = await world();
    await put(...hosts.map((name) => host(name)));
    const asked = withIds(hosts.map((source) => idOf({ source })));
    const page = async (page_input: Json) => {
      const { body } = await search({ ...asked, page_input: { limit: 2, ...page_input } });
      expect(body.pageInfo.totalCount).toBe("5");
      return { names: body.entities.entities.map(({ name }: Json) => name), info: body.pageInfo };
    };
    const first = await page({});
    const second = await page({ cursor: first.info.endCursor });
    const third = await page({ cursor: second.info.endCursor });
    expect([first.names, second.names, third.names]).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    const back = await page({ cursor: third.info.startCursor, direction: "DIRECTION_BACKWARD" });
    expect(back.names).toEqual(["c", "d"]);
  });

  test("beside other clauses, other ids too, all must hold", async () => {
    const { put, names, idOf } = await world();
    await put(...hosts.map((name) => host(name, { rack: name < "c" ? "r1" : "r2" })));
    const ids = (...of: string[]) => withIds(of.map((source) => idOf({ source }))).query.clause;
    const clause = (...clauses: Json[]) => ({ query: { clause: { and: { clauses } } } });
    const rack = { filter: { field: "rack", operation: "OP_EQUALS", value: "r2" } };
    const begins = { filter: { field: "dimensions.source", operation: "OP_STARTS_WITH", value: "d" } };
    expect(await names(clause(ids("a", "b", "c"), rack))).toEqual(["c"]);
    expect(await names(clause(ids("a", "b", "c", "d"), ids("e", "d", "c")))).toEqual(["c", "d"]);
    expect(await names(clause(ids("a", "c", "d"), { and: { clauses: [ids("c", "d", "e"), begins] } }))).toEqual(["d"]);
    expect(await names(clause({ not: { clause: ids("a", "b") } }, ids("b", "c")))).toEqual(["c"]);
    expect(await names(clause({ or: { clauses: [ids("a"), rack] } }, ids("a", "b", "d")))).toEqual(["a", "d"]);
    expect(await names(clause(ids("a"), ids("b")))).toEqual([]);
  });
});

describe("paging", () => {
  const queries: [string, Json][] = [
    ["by name", every],
    ["by name, descending", { ...every, sortby: [{ field: "name", order: 1 }] }],
    ["by a dimension that some lack, descending", { ...every, sortby: [{ field_kind: 2, field: "zone", order: 1 }] }],
    ["by a custom property", { ...every, sortby: [{ field_kind: 3, field: "p" }, { field: "createTime" }] }],
  ];

  async function filled() {
    const made = await world();
    const models = Array.from({ length: 60 }, (_, i) => ({
      dimensions: { source: `s${i}`, ...(i % 3 && { zone: `z${i % 4}` }) },
      metadataFields: { name: `n${i % 13}` },
    }));
    await made.put(...models);
    const ids = models.map(({ dimensions }) => made.idOf(dimensions as never));
    for (let i = 0; i < 40; i += 4)
      await made.set(ids.slice(i, i + 4), { p: [i % 5, `t${i % 3}`, true, [3]][(i / 4) % 4] });
    return { ...made, ids };
  }

  test.each(queries)("%s: forward and backward equal the whole list", async (_, query) => {
    const { search } = await filled();
    const whole = await search({ ...query, page_input: { limit: 1000 } });
    const expected = whole.body.entities.entities.map(({ id }: Json) => id);
    expect(new Set(expected).size).toBe(60);
    const ids = (bodies: Json[]) => bodies.flatMap((body) => body.entities.entities.map(({ id }: Json) => id));
    for (const limit of query === every ? [1, 2, 7, 100] : [7, 100]) {
      const forward = await pages(search, query, "DIRECTION_FORWARD", limit);
      expect(ids(forward)).toEqual(expected);
      expect(ids((await pages(search, query, "DIRECTION_BACKWARD", limit)).toReversed())).toEqual(expected);
      for (const { pageInfo } of forward) expect(pageInfo.totalCount).toBe("60");
    }
  });

  test.each(queries)(
    "%s: while others write and delete, each entity that stays is seen exactly once",
    async (_, query) => {
      const { search, put, ids } = await filled();
      const until = new AbortController();
      let writes = 0;
      const counted = async (...models: Json[]) => {
        await put(...models);
        writes += 1;
      };
      const writer = disturb(counted, until.signal);
      const nextWrite = async () => {
        for (const before = writes; writes === before; ) await sleep(3);
      };
      for (const direction of ["DIRECTION_FORWARD", "DIRECTION_BACKWARD"]) {
        const bodies = await pages(search, query, direction, 7, nextWrite);
        const seen = bodies.flatMap((body) => body.entities.entities.map(({ id }: Json) => id));
        const living = seen.filter((id: string) => ids.includes(id));
        expect(living.length).toBe(60);
        expect(new Set(living)).toEqual(new Set(ids));
        expect(new Set(seen).size).toBe(seen.length);
      }
      until.abort();
      expect(await writer).toBeGreaterThan(2);
    },
  );

  /** Makes entities all over the order and deletes them again, and changes others that do not move. Returns how often. */
  async function disturb(put: (...models: Json[]) => Promise<unknown>, until: AbortSignal) {
    let rounds = 0;
    for (; !until.aborted; rounds++) {
      const sources = Array.from({ length: 12 }, (_, i) => `x${rounds}-${i}`);
      await put(
        ...sources.map((source, i) => ({
          dimensions: { source, zone: `z${i % 4}` },
          metadataFields: { name: `n${i}` },
        })),
      );
      await put({ dimensions: { source: "s0" }, metadataFields: { name: "n0", round: rounds } });
      await put(
        ...sources.map((source, i) => ({
          dimensions: { source, zone: `z${i % 4}` },
          metadataFields: { _svc_deleted_entity: true },
        })),
      );
    }
    return rounds;
  }
});

describe("the list of fields", () => {
  test("has the dictionary's and those that were seen, spelled as in clauses, with their sources", async () => {
    const { call, put, idOf, set } = await world();
    await put({ dimensions: { source: "a", zone: "b" }, metadataFields: { note: "x", _orgs_groups: ["g"] } });
    await set([idOf({ source: "a", zone: "b" })], { owner: "ann" });
    await call("POST", "/v1/dictionary/entity_fields", { name: "dimensions.described", label: "Described" });
    const all = (await call("POST", "/v1/modelcontext/fields:listDefault", { option: 1, searchable_only: true })).body;
    expect(all.fieldSources).toMatchObject({
      name: "property",
      productionState: "property",
      "dimensions.zone": "dimension",
      "coreProperties.zone": "coreProperty",
      "metadataFields.note": "metadata",
      "coreProperties._orgs_groups": "coreProperty",
      "customProperties.owner": "customProperty",
      "dimensions.described": "dimension",
    });
    expect(all.fields).toEqual(Object.keys(all.fieldSources).sort());
    expect(all.fields).not.toContain("coreProperties.note");
    const core = (await call("POST", "/v1/modelcontext/fields:listDefault", {})).body;
    expect(new Set(Object.values(core.fieldSources))).toEqual(new Set(["property", "coreProperty"]));
    expect(core.fields).toContain("coreProperties.zone");
    const stranger = await world();
    expect(
      (await stranger.call("POST", "/v1/modelcontext/fields:listDefault", { option: 1 })).body.fields,
    ).not.toContain("dimensions.zone");
  });
});
