import { expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { sendingTenant } from "../../notifications/dispatch.ts";
import { newWorld } from "../../support/calls.ts";
import { testServer } from "../../support/server.ts";
import { v1 } from "../../support/v1.ts";

const server = await testServer({});
const { sql } = server.database;

// biome-ignore lint/suspicious/noExplicitAny: answers are read as JSON
type Json = any;

const answerBytesMax = 17 * 1024 * 1024;

async function world() {
  const { tenant, client } = await newWorld(server);
  return { tenant, client, call: v1(server.url, tenant.headers) };
}

/** Reads a list to its end, in either direction, and checks that no answer is larger than its bound. */
async function readAll(page: (pageInput: object) => Promise<Json>, itemsOf: (body: Json) => Json[], direction: string) {
  const found: Json[] = [];
  const sizes: number[] = [];
  for (let pageInput: object = { limit: 1000, direction }; ; ) {
    const body = await page(pageInput);
    expect(JSON.stringify(body).length).toBeLessThan(answerBytesMax);
    const items = itemsOf(body);
    sizes.push(items.length);
    found.push(...(direction === "DIRECTION_BACKWARD" ? items.toReversed() : items));
    const info = body.pageInfo ?? body.page_info;
    const back = direction === "DIRECTION_BACKWARD" && info.hasPrev !== undefined;
    if (!(back ? info.hasPrev : (info.hasNext ?? info.has_next))) return { found, sizes };
    pageInput = { limit: 1000, direction, cursor: info.cursor ?? (back ? info.startCursor : info.endCursor) };
  }
}

const directions = ["DIRECTION_FORWARD", "DIRECTION_BACKWARD"];
const names = Array.from({ length: 6 }, (_, i) => `n${i}`);

// Six texts of 1 MiB, which cannot be compressed, or can.
const mib = (distinct: boolean) =>
  distinct
    ? sql`(select string_agg(md5('a' || i), '') from generate_series(1, 32768) as i)`
    : sql`repeat('x', 1048576)`;
const ids = (distinct: boolean) => sql`(select jsonb_agg(${mib(distinct)} || n) from generate_series(1, 6) as n)`;

test.each(directions.slice(0, 1))("pages of maintenance windows end at a bound of bytes, %s", async (direction) => {
  const { tenant, call } = await world();
  const path = "/v1/modelcontext/maintwindows";
  for (const name of names) {
    const schedule = { start: Date.now() + 3_600_000, duration: 60_000 };
    const specification = { name, schedule, maintenanceState: 300, withIds: { ids: ["unknown"] } };
    expect((await call("POST", path, { specification })).status).toBe(200);
  }
  for (const [name, distinct] of [
    ["n0", true],
    ["n1", false],
    ["n3", true],
    ["n4", true],
    ["n5", true],
  ] as const) {
    await sql`
      update maintenance_windows set clause = jsonb_build_object('withIds', jsonb_build_object('ids', ${ids(distinct)}))
      where tenant_id = ${tenant.id} and name = ${name}`;
  }
  const all = { filter: { field: "name", operation: "OP_EXISTS" } };
  const reads: [string, (page_input: object) => object][] = [
    [":list", (page_input) => ({ page_input })],
    [":search", (page_input) => ({ search_input: { query: { clause: all }, page_input } })],
  ];
  for (const [verb, bodyOf] of [reads[directions.indexOf(direction)] as (typeof reads)[number]]) {
    const read = async (input: object) => {
      const { body } = await call("POST", path + verb, bodyOf(input));
      expect(body.pageInfo.totalCount).toBe("6");
      return body;
    };
    const { found, sizes } = await readAll(read, ({ maintWindows }) => maintWindows, direction);
    const order = direction === "DIRECTION_BACKWARD" ? names.toReversed() : names;
    expect(found.map(({ name }) => name)).toEqual(order);
    expect(sizes.length).toBe(3);
    for (const { name, query } of found) expect(query.clause.withIds.ids).toHaveLength(name === "n2" ? 1 : 6);
  }
});

test("groups of entities that hold more than an answer may are refused", async () => {
  const { tenant, call } = await world();
  const timestamp = Date.now();
  const models = Array.from({ length: 300 }, (_, i) => ({ timestamp, dimensions: { source: `h${i}` } }));
  expect((await call("POST", "/v1/data-receiver/models", { models })).status).toBe(200);
  await sql`
    update entities set custom_properties = jsonb_build_object('p', name || repeat('x', 65000))
    where tenant_id = ${tenant.id}`;
  const query = { clause: { filter: { field: "name", operation: "OP_EXISTS" } } };
  const search_input = { query, group_by: [{ field: "customProperties.p" }], page_input: { limit: 1 } };
  const { body } = await call("POST", "/v1/modelcontext/entities:search", { search_input });
  expect(body).toMatchObject({
    code: 3,
    message: expect.stringContaining("must make groups of at most 16777216 bytes"),
  });
});

test("pages of entities end at a bound of bytes, whether PostgreSQL has stored them compressed or not", async () => {
  const { tenant, call } = await world();
  const sources = ["m0", "m1", "m2", "m3"];
  const timestamp = Date.now();
  const models = sources.map((source) => ({ timestamp, dimensions: { source }, metadataFields: { name: source } }));
  expect((await call("POST", "/v1/data-receiver/models", { models })).status).toBe(200);
  // As 200 properties of 64 KiB are, set one after the other; those of m0 cannot be compressed.
  for (const source of ["m0", "m1", "m3"]) {
    await sql`
      update entities set custom_properties = (
          select jsonb_object_agg('p' || i, case when ${source} = 'm0'
            then (select string_agg(md5(i || ' ' || j), '') from generate_series(1, 2048) as j)
            else repeat('x', 65536) end)
          from generate_series(1, 200) as i)
      where tenant_id = ${tenant.id} and dimensions ->> 'source' = ${source}`;
  }
  const query = { clause: { filter: { field: "name", operation: "OP_EXISTS" } } };
  const read = async (page_input: object) =>
    (await call("POST", "/v1/modelcontext/entities:search", { search_input: { query, page_input } })).body;
  for (const direction of directions) {
    const { found } = await readAll(read, ({ entities }) => entities.entities, direction);
    expect(found.map(({ name }) => name).sort()).toEqual(sources);
    for (const { name, customProperties } of found)
      expect(Object.keys(customProperties ?? {}), name).toHaveLength(name === "m2" ? 0 : 200);
  }
});

test("pages of custom property updaters end at a bound of bytes", async () => {
  const { tenant, call } = await world();
  const path = "/v1/modelcontext/custompropertyupdaters";
  const updaters = names.map((name) => ({
    name,
    properties: { a: "b" },
    entity_input: { clause: { withIds: { ids: ["unknown"] } } },
  }));
  expect((await call("POST", `${path}:create`, { updaters })).status).toBe(200);
  await sql`
    update property_updaters set properties = jsonb_build_object('a', ${ids(true)})
    where tenant_id = ${tenant.id} and name <> 'n2'`;
  const read = async (page_input: object) => (await call("POST", `${path}:list`, { page_input })).body;
  const { found, sizes } = await readAll(read, ({ updaters }) => updaters, "DIRECTION_FORWARD");
  expect(found.map(({ name }) => name)).toEqual(names);
  expect(sizes.length).toBe(3);
  for (const { name, properties } of found) expect(properties.a).toHaveLength(name === "n2" ? 1 : 6);
});

test("pages of events end at a bound of bytes, and of one event this many occurrences are shown as fit", async () => {
  const { tenant, client, call } = await world();
  const timestamp = Date.now();
  const events = names.map((name) => ({ name, timestamp, dimensions: { source: "a" }, status: "STATUS_CLOSED" }));
  expect((await call("POST", "/v1/data-receiver/events", { events })).status).toBe(200);
  // 64 KiB each, half of them compressed: 6 MiB of n0 and n1 each, 25 MiB of n3.
  await sql`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)
    select o.tenant_id, o.event_id, n, o.severity, o.status, false, '', '', '', jsonb_build_object('text',
        case when n % 2 = 0 then repeat('x', 65000) else left(${mib(true)}, 65000) end),
      o.start_ms - n, o.start_ms - n, o.start_ms - n, 1
    from occurrences o join events e on e.tenant_id = o.tenant_id and e.id = o.event_id,
      generate_series(2, case when e.name = 'n3' then 300 when e.name in ('n0', 'n1') then 100 else 1 end) as n
    where o.tenant_id = ${tenant.id}`;
  let large: string[] = [];
  for (const direction of directions.slice(1)) {
    const read = async (pageInput: object) => {
      const query = { sortBy: [{ byField: { field: "name" } }], pageInput };
      const { body } = await call("POST", "/v1/events:search", { query });
      expect(body.pageInfo.totalCount).toBe("6");
      return body;
    };
    const { found, sizes } = await readAll(read, ({ results }) => results, direction);
    expect(found.map(({ name }) => name)).toEqual(direction === "DIRECTION_BACKWARD" ? names.toReversed() : names);
    expect(sizes.length).toBe(3);
    for (const { name, count, matchedCount, occurrences } of found) {
      expect(matchedCount).toBe(count);
      if (name !== "n3") expect(occurrences).toHaveLength(Number(count));
      else expect(occurrences.length).toBeGreaterThan(200);
      if (name === "n3") large = occurrences.map(({ id }: Json) => id);
      for (const { dimensions } of occurrences) expect(dimensions).toEqual({ source: "a" });
    }
  }
  const id = (large[0] as string).split(":")[0] as string;
  const get = (more: string[]) => client(EventQueryService).getEvent({ id, occurrenceIds: [...large, ...more] });
  expect((await get([])).result?.occurrences).toHaveLength(large.length);
  const others = Array.from({ length: 400 }, (_, n) => `${id}:${n + 1}`);
  await expect(get(others)).rejects.toThrow("occurrenceIds: names occurrences that hold");
});

const mark = Array.from({ length: 300 }, (_, n) => `e${n}`);
const long = "x".repeat(65_000);

test("values of events that an answer cannot hold together are not counted by", async () => {
  const { tenant, call } = await world();
  const start = Math.floor(Date.now() / 1000) * 1000 - 300_000;
  const events = mark.map((name, n) => ({ name, timestamp: start + n * 1000, dimensions: { source: "a" } }));
  expect((await call("POST", "/v1/data-receiver/events", { events })).status).toBe(200);
  await sql`
    update occurrences set body = event_id::text || ${long}, summary = ${long},
      metadata = jsonb_build_object('own', event_id::text || ${long}, 'same', ${long}::text)
    where tenant_id = ${tenant.id}`;
  const timeRange = { start, end: start + 300_000 };
  const count = (fields: string[], query: object = {}) =>
    call("POST", "/v1/events:count", { query, fields: fields.map((field) => ({ field })) });
  const frequency = (fields: string[], query: object = {}) =>
    call("POST", "/v1/events:frequency", {
      query: { timeRange, ...query },
      downsample: 1000,
      groupBy: fields.map((field) => ({ field })),
    });
  const isRefused = async (asking: Promise<{ body: Json }>) => {
    const { code, message } = (await asking).body;
    expect({ code, message }).toEqual({
      code: 3,
      message: "fields: must have values of at most 16777216 bytes together",
    });
  };
  for (const ask of [count, frequency]) {
    for (const field of ["body", "metadataFields.own"]) await isRefused(ask([field]));
    const some = { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "e1" } } };
    expect((await ask(["body"], some)).body.results.body.values).toHaveLength(111);
    // Each alone fits, the two together do not.
    const most = { clause: { filter: { field: "name", operation: "OP_LESS", value: "e3" } } };
    if (ask === count) expect((await ask(["body"], most)).body.results.body.values).toHaveLength(223);
    await isRefused(ask(["body", "metadataFields.own"], most));
    // A value is in the answer once, in however many buckets it is.
    const { results } = (await ask(["summary", "metadataFields.same"])).body;
    for (const field of ["summary", "metadataFields.same"]) expect(results[field].values).toHaveLength(1);
  }
});

test("notes on an occurrence hold at most 16 MiB together, and none that shrinks is refused", async () => {
  const { tenant, call } = await world();
  const events = [{ name: "noted", timestamp: Date.now(), dimensions: { source: "a" } }];
  expect((await call("POST", "/v1/data-receiver/events", { events })).status).toBe(200);
  const [event] = (await call("POST", "/v1/events:search", { query: {} })).body.results;
  const ids = { eventId: event.id, occurrenceId: event.occurrences[0].id };
  await sql`
    insert into annotations (tenant_id, event_id, number, id, text, created_by, created_ms, updated_ms, place)
    select tenant_id, event_id, number, 'n' || n, repeat('x', 65536), 'test', 0, 0, n
    from occurrences, generate_series(1, 255) as n where tenant_id = ${tenant.id}`;
  const annotate = async (annotations: object[]) => {
    const { body } = await call("POST", "/v1/event-management/annotate", {
      annotations: annotations.map((item) => ({ ...ids, ...item })),
    });
    return body.annotationResponses.map(({ error }: Json) => error);
  };
  const refused = (bytes: number) =>
    `the annotations of the occurrence would hold ${bytes} bytes together; 16777216 are allowed`;
  // In bytes of UTF-8: an umlaut has two.
  expect(await annotate([{ annotation: "ü".repeat(32_768) }, { annotation: "a" }])).toEqual(["", refused(16_777_217)]);
  const shrinking = { annotationId: "n1", annotation: "x".repeat(65_000) };
  expect(await annotate([{ annotation: "b" }, shrinking, { annotation: "c".repeat(536) }])).toEqual([
    refused(16_777_217),
    "",
    "",
  ]);
  expect(await annotate([{ annotationId: "n1", annotation: "y".repeat(65_001) }])).toEqual([refused(16_777_217)]);
  expect(await annotate([{ annotationId: "n1", annotation: "y".repeat(65_000) }])).toEqual([""]);
  const { body } = await call("GET", `/v1/events/${encodeURIComponent(event.id)}`);
  expect(body.result.occurrences[0].annotations).toHaveLength(257);
  expect(JSON.stringify(body).length).toBeLessThan(answerBytesMax);
});

test("pages of deliveries end at a bound of bytes, of each its newest attempts", async () => {
  const { tenant, call } = await world();
  // 25 attempts of 500 characters of three bytes each.
  await sql`
    insert into delivery_history (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
      entity_id, occasion, told, attempts, error, status, ended_ms)
    select ${tenant.id}, ids.id, ('x' || left(translate(ids.id::text, '-', ''), 12))::bit(48)::int8, ids.id, 'r', array['t'], 'd', '',
      '', 'first', '{}', tries.attempts, '', 'FAILED', 0
    from (select uuidv7() as id from generate_series(1, 700)) as ids, (
      select jsonb_agg(jsonb_build_object('timeMs', n, 'reason', 'busy', 'answer', repeat('字', 500))) as attempts
      from generate_series(1, 25) as n) as tries`;
  const found: Json[] = [];
  const sizes: number[] = [];
  for (let pageToken = ""; ; ) {
    const { body } = await call("GET", `/v1/notification/deliveries?pageSize=1000&pageToken=${pageToken}`);
    expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(answerBytesMax + 1024 * 1024);
    expect(body.totalCount).toBe("700");
    sizes.push(body.deliveries.length);
    found.push(...body.deliveries);
    pageToken = encodeURIComponent(body.nextPageToken);
    if (pageToken === "") break;
  }
  expect(sizes).toHaveLength(2);
  expect(new Set(found.map(({ id }) => id)).size).toBe(700);
  for (const { attempts, tries } of found) {
    expect(attempts).toBe(25);
    expect(tries).toHaveLength(20);
    expect(Date.parse(tries[0].time)).toBe(6);
  }
});

test("previews that an answer cannot hold together are refused", async () => {
  const type = { email: { to: "ops@example.com", subject: "", body: "{{{event.body}}}".repeat(4) } };
  const destinations = Object.fromEntries(Array.from({ length: 70 }, (_, n) => [`d${n}`, { kind: "email", type }]));
  const { headers } = await sendingTenant(server.database, "http://127.0.0.1", Date.now(), destinations);
  const call = v1(server.url, headers);
  const preview = async (body: string) => {
    const event = { name: "a", timestamp: Date.now(), dimensions: { source: "a" }, body };
    return (await call("POST", "/v1/notification/rules/page:preview", { event })).body;
  };
  expect((await preview("x".repeat(50_000))).previews).toHaveLength(70);
  const { code, message } = await preview(long);
  expect({ code, message }).toEqual({
    code: 3,
    message: expect.stringContaining("name: names a rule whose previews hold more than 16777216 bytes together"),
  });
});
