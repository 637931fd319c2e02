import { describe, expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const path = "/v1/modelcontext/maintwindows";
const hourMs = 3_600_000;
const inAnHour = () => Date.now() + hourMs;

async function newTenant() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  for (const name of ["on call", "r"]) await call("POST", "/v1/notification/rules", { name });
  return {
    tenant,
    post: (verb: string, body: unknown) => call("POST", path + verb, body),
    put: (body: unknown) => call("PUT", path, body),
  };
}
type Tenant = Awaited<ReturnType<typeof newTenant>>;

let made = 0;
const specification = (more: object = {}) => ({
  name: `window ${++made}`,
  schedule: { start: inAnHour(), duration: hourMs, recurrence: null },
  maintenanceState: 300,
  withIds: { ids: ["unknown"] },
  ...more,
});

async function createIn({ post }: Tenant, more: object = {}) {
  const sent = specification(more);
  const { status, body } = await post("", { specification: sent });
  expect({ status, body }).toEqual({ status: 200, body: { id: expect.any(String) } });
  return { id: body.id as string, sent };
}

async function only({ post }: Tenant) {
  const { body } = await post(":list", {});
  expect(body.maintWindows).toHaveLength(1);
  return body.maintWindows[0];
}

const all = { filter: { field: "name", operation: "OP_EXISTS" } };
const nameIs = (value: string) => ({ filter: { field: "name", operation: "OP_EQUALS", value } });

describe("a window that was created is answered", () => {
  test("with all of its members", async () => {
    const one = await newTenant();
    const { id, sent } = await createIn(one, {
      description: "patches",
      owner: "ops",
      tags: ["a", "b"],
      runMode: 0,
      status: "ENABLED",
      exitState: 500,
      overrideExitState: true,
      force: true,
      doNotPropagateToChildren: true,
      notification: { message: "begins", rules: ["on call"] },
      schedule: {
        start: inAnHour(),
        duration: `${hourMs}`,
        skipNext: 2,
        timeZone: "Europe/Berlin",
        recurrence: { type: 4, interval: 1, dayOfWeek: "MON,WED" },
      },
    });
    const window = await only(one);
    expect(window).toEqual({
      id,
      tenant: one.tenant.name,
      query: { type: "ENTITY", timeRange: null, clause: { withIds: { ids: ["unknown"] } } },
      runMode: "AUTO",
      schedule: {
        start: `${sent.schedule.start}`,
        duration: `${hourMs}`,
        skipNext: "2",
        timeZone: "Europe/Berlin",
        recurrence: expect.objectContaining({ type: "4", interval: "1", dayOfWeek: "MON,WED" }),
      },
      maintenanceState: 300,
      exitState: 500,
      status: "ENABLED",
      createTime: expect.stringMatching(/^\d{13}$/),
      updateTime: window.createTime,
      deleted: false,
      createdBy: "USER manager",
      updatedBy: "USER manager",
      name: sent.name,
      description: "patches",
      owner: "ops",
      notification: { message: "begins", rules: ["on call"] },
      tags: ["a", "b"],
      doNotPropagateToChildren: true,
      overrideExitState: true,
      force: true,
      runState: "SCHEDULED",
      nextStart: expect.stringMatching(/^\d{13}$/),
      trouble: expect.any(String),
      etag: expect.stringMatching(/^[\w-]{16}$/),
    });
    // The third Monday or Wednesday from now on, at the hour of the start.
    const nextMs = Number(window.nextStart);
    expect(nextMs - sent.schedule.start).toBeGreaterThan(7 * 24 * hourMs - 2 * hourMs);
  });

  test("with defaults for what was left out, and its query as it was sent", async () => {
    const one = await newTenant();
    await createIn(one, { withIds: undefined, query: { clause: all } });
    expect(await only(one)).toMatchObject({
      query: { type: "ENTITY", clause: { filter: { field: "name" } } },
      schedule: { skipNext: "0", recurrence: null, timeZone: "UTC" },
      runMode: "AUTO",
      status: "ENABLED",
      notification: null,
      tags: [],
      exitState: 0,
      runState: "SCHEDULED",
    });
  });

  test("and may be sent back as it was answered", async () => {
    const one = await newTenant();
    const { id } = await createIn(one, { runMode: "MANUAL" });
    const before = await only(one);
    expect(await one.put({ id, specification: before })).toMatchObject({ status: 200, body: {} });
    const after = await only(one);
    expect(after).toEqual({ ...before, updateTime: after.updateTime });
  });
});

describe("a specification that breaks a rule is refused, with the rule's place, and nothing is stored", () => {
  test.each<[string, object, string]>([
    ["no name", { name: "" }, "specification.name"],
    ["a name with a control character", { name: "a\nb" }, "specification.name"],
    ["a name with a character that is not seen", { name: "a\u200bb" }, "specification.name"],
    ["no schedule", { schedule: undefined }, "specification.schedule"],
    ["no start", { schedule: { duration: 1 } }, "specification.schedule.start"],
    ["no duration", { schedule: { start: inAnHour() } }, "specification.schedule.duration"],
    ["no state", { maintenanceState: undefined }, "specification.maintenanceState"],
    ["no entities", { withIds: undefined }, "specification"],
    ["no ids", { withIds: { ids: [] } }, "specification.withIds.ids"],
    ["a query without a clause", { withIds: undefined, query: {} }, "specification.query.clause"],
    ["an empty clause", { withIds: undefined, query: { clause: {} } }, "specification.query.clause"],
    [
      "a broken expression",
      { withIds: undefined, query: { clause: { filter: { field: "name", operation: "OP_REGEX", value: "(" } } } },
      "specification.query.clause.filter.value",
    ],
    ["an unknown run mode", { runMode: 7 }, "specification.runMode"],
    ["an unknown status", { status: 7 }, "specification.status"],
    [
      "an unknown recurrence",
      { schedule: { start: inAnHour(), duration: 1, recurrence: { type: 8 } } },
      "specification.schedule.recurrence.type",
    ],
    [
      "days without an interval",
      { schedule: { start: inAnHour(), duration: 1, recurrence: { type: 3 } } },
      "specification.schedule.recurrence.interval",
    ],
    [
      "weeks without days",
      { schedule: { start: inAnHour(), duration: 1, recurrence: { type: 4, interval: 1 } } },
      "specification.schedule.recurrence.dayOfWeek",
    ],
    [
      "a strange time zone",
      { schedule: { start: inAnHour(), duration: 1, timeZone: "Mars" } },
      "specification.schedule.timeZone",
    ],
    [
      "a start in seconds",
      { schedule: { start: Math.floor(inAnHour() / 1000), duration: hourMs, recurrence: { type: 3, interval: 1 } } },
      "specification.schedule.start",
    ],
    ["an override without a state", { overrideExitState: true }, "specification.exitState"],
    [
      "a single run in the past",
      { schedule: { start: Date.now() - 2 * hourMs, duration: hourMs } },
      "specification.schedule",
    ],
  ])("%s", async (_, more, place) => {
    const one = await newTenant();
    const { status, body } = await one.post("", { specification: specification(more) });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 3 });
    const [{ field }] = body.details?.[0]?.fieldViolations ?? [{ field: body.message.split(":", 1)[0] }];
    expect(field).toBe(place);
    expect((await one.post(":list", {})).body.maintWindows).toEqual([]);
  });

  test("ids and a query at once", async () => {
    const { post } = await newTenant();
    const answer = await post("", { specification: specification({ query: { clause: all } }) });
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringMatching(/query|withIds/) } });
  });

  test("no specification", async () => {
    const { post } = await newTenant();
    expect(await post("", {})).toMatchObject({ status: 400, body: { code: 3 } });
  });
});

describe("names", () => {
  test("one that is taken is refused with 400, in another tenant it is free", async () => {
    const one = await newTenant();
    const { sent } = await createIn(one);
    const again = await one.post("", { specification: sent });
    expect(again).toMatchObject({ status: 400, body: { code: 6, message: expect.stringContaining(sent.name) } });
    await createIn(await newTenant(), { name: sent.name });
  });

  test("are the same in whichever form of Unicode they are written", async () => {
    const one = await newTenant();
    await createIn(one, { name: "caf\u00e9" });
    expect(await one.post("", { specification: specification({ name: "cafe\u0301" }) })).toMatchObject({ status: 400 });
  });

  test("cannot be changed", async () => {
    const one = await newTenant();
    const { id } = await createIn(one);
    const answer = await one.put({ id, specification: specification() });
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining("name") } });
  });
});

describe("replacing", () => {
  test("an unknown window: 404", async () => {
    const { put } = await newTenant();
    for (const id of ["unknown", "0190a0a0-0000-7000-8000-000000000000"]) {
      expect(await put({ id, specification: specification() })).toMatchObject({ status: 404, body: { code: 5 } });
    }
    expect(await put({ specification: specification() })).toMatchObject({ status: 400 });
  });

  test("leaves nothing of what stood there before, but for name, id and creation", async () => {
    const one = await newTenant();
    const { id, sent } = await createIn(one, { description: "old", tags: ["old"], exitState: 500, owner: "old" });
    const before = await only(one);
    const { status } = await one.put({ id, specification: specification({ name: sent.name, maintenanceState: 400 }) });
    expect(status).toBe(200);
    expect(await only(one)).toMatchObject({
      id,
      createTime: before.createTime,
      description: "",
      owner: "",
      tags: [],
      exitState: 0,
      maintenanceState: 400,
    });
  });

  test("a window that is over may get another description, and no other time in the past", async () => {
    const one = await newTenant();
    const { id, sent } = await createIn(one);
    const schedule = { ...sent.schedule, start: Date.now() - 2 * hourMs };
    await sql`update maintenance_windows set schedule = schedule || ${JSON.stringify({ start: `${schedule.start}` })}::text::jsonb
      where tenant_id = ${one.tenant.id}`;
    expect(await one.put({ id, specification: { ...sent, schedule, description: "x" } })).toMatchObject({
      status: 200,
    });
    expect(await only(one)).toMatchObject({ description: "x", runState: "COMPLETED" });
    const earlier = { ...schedule, start: schedule.start - 1 };
    expect(await one.put({ id, specification: { ...sent, schedule: earlier } })).toMatchObject({ status: 400 });
  });
});

describe("deleting", () => {
  test("removes all that are named", async () => {
    const one = await newTenant();
    const ids = [(await createIn(one)).id, (await createIn(one)).id];
    const { sent } = await createIn(one);
    expect(await one.post(":deleteBulk", { ids })).toMatchObject({ status: 200, body: {} });
    expect(await only(one)).toMatchObject({ name: sent.name });
  });

  test("no ids: 400", async () => {
    const { post } = await newTenant();
    for (const body of [{}, { ids: [] }]) expect(await post(":deleteBulk", body)).toMatchObject({ status: 400 });
  });

  test("one unknown id: 404, and nothing is deleted", async () => {
    const one = await newTenant();
    const { id } = await createIn(one);
    const other = await createIn(await newTenant());
    for (const ids of [
      [id, "unknown"],
      [other.id, id],
    ]) {
      expect(await one.post(":deleteBulk", { ids })).toMatchObject({ status: 404, body: { code: 5 } });
    }
    expect(await only(one)).toMatchObject({ id });
  });
});

describe("starting and stopping by hand", () => {
  test("starts a window of either mode, stops it, and refuses what it is already", async () => {
    const one = await newTenant();
    for (const runMode of ["MANUAL", "AUTO"]) {
      const { id } = await createIn(one, { runMode });
      const state = async () =>
        (await one.post(":search", { search_input: { query: { clause: { withIds: { ids: [id] } } } } })).body
          .maintWindows[0].runState;
      expect(await one.post(":stop", { id })).toMatchObject({ status: 400, body: { code: 9 } });
      expect(await one.post(":start", { id })).toMatchObject({ status: 200, body: {} });
      expect(await state()).toBe("IN_PROGRESS");
      expect(await one.post(":start", { id })).toMatchObject({ status: 400, body: { code: 9 } });
      expect(await one.post(":stop", { id })).toMatchObject({ status: 200, body: {} });
      expect(await state()).toBe(runMode === "MANUAL" ? "COMPLETED" : "SCHEDULED");
    }
  });

  test("does not start what is disabled, nor what is unknown", async () => {
    const one = await newTenant();
    const { id } = await createIn(one, { status: "DISABLED" });
    expect((await only(one)).nextStart).toBeUndefined();
    expect(await one.post(":start", { id })).toMatchObject({ status: 400, body: { code: 9 } });
    for (const verb of [":start", ":stop"]) {
      expect(await one.post(verb, { id: "unknown" })).toMatchObject({ status: 404, body: { code: 5 } });
      expect(await one.post(verb, {})).toMatchObject({ status: 400, body: { code: 3 } });
    }
  });
});

test("a stored schedule that is not taken any more is shown, starts by hand, and can be replaced", async () => {
  const one = await newTenant();
  const { id, sent } = await createIn(one, {
    schedule: { start: inAnHour(), duration: hourMs, recurrence: { type: 7, cronMinutes: "0" } },
  });
  await sql`
    update maintenance_windows set schedule = jsonb_set(schedule, '{timeZone}', '"Gone/Zone"')
    where tenant_id = ${one.tenant.id}`;
  const { schedule } = await only(one);
  expect(schedule.timeZone).toBe("Gone/Zone");
  expect(await one.post(":start", { id })).toMatchObject({ status: 200 });
  expect(await one.post(":stop", { id })).toMatchObject({ status: 200 });
  const refused = await one.put({ id, specification: { ...sent, schedule } });
  expect(refused.body.message).toMatch(/schedule\.timeZone: must be the IANA name/);
  expect(await one.put({ id, specification: sent })).toMatchObject({ status: 200 });
});

describe("searching", async () => {
  const one = await newTenant();
  const found = async (clause: object) => {
    const { status, body } = await one.post(":search", { search_input: { query: { clause } } });
    expect(status).toBe(200);
    expect(body.pageInfo.totalCount).toBe(`${body.maintWindows.length}`);
    return body.maintWindows.map(({ name }: { name: string }) => name);
  };
  const filter = (field: string, operation: string, value: unknown) => ({ filter: { field, operation, value } });
  const start = inAnHour();
  await createIn(one, {
    name: "alpha",
    runMode: 1,
    tags: ["x", "y"],
    owner: "ops",
    schedule: { start, duration: 5 * hourMs },
  });
  await createIn(one, { name: "beta", status: 1, notification: { message: "hello", rules: ["r"] }, force: true });
  const weekly = { type: 4, interval: 2, dayOfWeek: "SUN" };
  await createIn(one, { name: "gamma", maintenanceState: -1, schedule: { start, duration: 1, recurrence: weekly } });
  await one.post(":start", { id: (await one.post(":list", {})).body.maintWindows[0].id });

  test.each<[object, string[]]>([
    [filter("runMode", "OP_EQUALS", "MANUAL"), ["alpha"]],
    [filter("runMode", "OP_EQUALS", 1), ["alpha"]],
    [{ in: { field: "runMode", values: ["AUTO"] } }, ["beta", "gamma"]],
    [filter("status", "OP_EQUALS", "DISABLED"), ["beta"]],
    [filter("status", "OP_NOT_EQUALS", 1), ["alpha", "gamma"]],
    [filter("runState", "OP_EQUALS", "IN_PROGRESS"), ["alpha"]],
    [filter("nextStart", "OP_EXISTS", undefined), ["gamma"]],
    [{ range: { path: "nextStart", gte: start, lt: start + 15 * 24 * hourMs } }, ["gamma"]],
    [filter("name", "OP_STARTS_WITH", "al"), ["alpha"]],
    [filter("name", "OP_REGEX", "^[ab]"), ["alpha", "beta"]],
    [filter("tags", "OP_EQUALS", "y"), ["alpha"]],
    [filter("owner", "OP_CONTAINS", "p"), ["alpha"]],
    [filter("maintenanceState", "OP_LESS", 0), ["gamma"]],
    [filter("force", "OP_EQUALS", true), ["beta"]],
    [filter("deleted", "OP_EQUALS", true), []],
    [filter("schedule.start", "OP_EQUALS", start), ["alpha", "gamma"]],
    [filter("schedule.duration", "OP_EQUALS", 5 * hourMs), ["alpha"]],
    [filter("schedule.skipNext", "OP_GREATER", 0), []],
    [filter("schedule.recurrence.dayOfWeek", "OP_EQUALS", "SUN"), ["gamma"]],
    [filter("schedule.recurrence.type", "OP_EQUALS", 4), ["gamma"]],
    [filter("notification.message", "OP_TEXT", "HELLO"), ["beta"]],
    [filter("tenant", "OP_EQUALS", one.tenant.name), ["alpha", "beta", "gamma"]],
    [filter("createdBy", "OP_EQUALS", "USER manager"), ["alpha", "beta", "gamma"]],
    [filter("unknown", "OP_EXISTS", undefined), []],
    [{ not: { clause: filter("runMode", "OP_EQUALS", "MANUAL") } }, ["beta", "gamma"]],
    [{ and: { clauses: [all, { or: { clauses: [nameIs("beta"), nameIs("gamma")] } }] } }, ["beta", "gamma"]],
    [{ withIds: { ids: ["unknown"] } }, []],
  ])("%j", async (clause, expected) => {
    expect(await found(clause)).toEqual(expected);
  });

  test("page by page", async () => {
    const page = (cursor: string) =>
      one.post(":search", { search_input: { query: { clause: all }, page_input: { limit: 2, cursor } } });
    const { body: first } = await page("");
    expect(first.maintWindows.map(({ name }: { name: string }) => name)).toEqual(["alpha", "beta"]);
    expect(first.pageInfo).toMatchObject({ count: "2", totalCount: "3", hasNext: true, hasPrev: false });
    // Counted for the first page alone.
    const more = await one.post("", { specification: specification({ name: "delta" }) });
    expect(more.status).toBe(200);
    const { body: grown } = await page(first.pageInfo.endCursor);
    expect(grown.pageInfo.totalCount).toBe("3");
    await one.post(":deleteBulk", { ids: [more.body.id] });
    const { body: second } = await page(first.pageInfo.endCursor);
    expect(second.maintWindows.map(({ name }: { name: string }) => name)).toEqual(["gamma"]);
    expect(second.pageInfo).toMatchObject({ hasNext: false, hasPrev: true });
  });

  test.each([{}, { search_input: {} }, { search_input: { query: {} } }, { search_input: { query: { clause: {} } } }])(
    "nothing to search for: 400 for %j",
    async (body) => {
      expect(await one.post(":search", body)).toMatchObject({ status: 400, body: { code: 3 } });
    },
  );
});

test("each write leaves a row in the audit log", async () => {
  const one = await newTenant();
  const { id, sent } = await createIn(one, { runMode: 1 });
  await one.put({ id, specification: sent });
  await one.post(":start", { id });
  await one.post(":stop", { id });
  await one.post(":deleteBulk", { ids: [id] });
  const rows = await sql<{ method: string; resource: string }[]>`
    select method, resource from audit_entries where tenant_id = ${one.tenant.id} order by time_ms, id`;
  const written = rows.filter(({ method }) => method.includes("MaintenanceWindow"));
  expect(written.map(({ method }) => method.replace(/MaintenanceWindows?/, ""))).toEqual([
    "Create",
    "Replace",
    "Start",
    "Stop",
    "Delete",
  ]);
  expect(new Set(written.map(({ resource }) => resource.split("/").at(-1)))).toEqual(new Set([id]));
});

test("the message of a window is checked when it is stored: its template, and that its rules exist, by names in NFC", async () => {
  const one = await newTenant();
  const call = v1(server.url, one.tenant.headers);
  const refused = async (notification: object, message: string) =>
    expect(await one.post("", { specification: specification({ notification }) })).toMatchObject({
      status: 400,
      body: { code: 3, message: expect.stringContaining(message) },
    });
  await refused({ message: "{{#open}}", rules: [] }, "specification.notification.message: is no Mustache template");
  await refused(
    { message: "", rules: ["r", "nobody"] },
    'specification.notification.rules[1]: there is no rule named "nobody"',
  );
  const [composed, decomposed] = ["B\u00fcro", "Bu\u0308ro"];
  await call("POST", "/v1/notification/rules", { name: composed });
  const { id, sent } = await createIn(one, { notification: { message: "", rules: [decomposed] } });
  expect((await only(one)).notification.rules).toEqual([composed]);
  await call("DELETE", `/v1/notification/rules/${encodeURIComponent(composed)}`);
  // What is shown can be sent again.
  expect(await one.put({ id, specification: sent })).toMatchObject({ status: 200 });
});
