import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { eventJson, eventTrigger, triggersPath } from "./samples.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const json = v1(server.url, tenant.headers);
const way = transport(server.target, "grpc", tenant.headers);
const triggers = createClient(TriggerService, way);
const rules = createClient(RuleService, way);

let made = 0;
let name = "";
let path = "";
beforeEach(() => {
  made += 1;
  name = `trigger ${made}`;
  path = `${triggersPath}/${encodeURIComponent(name)}`;
});
const refused = (message: string) => ({ status: 400, body: { code: 3, message: expect.stringContaining(message) } });

describe("a new trigger", () => {
  test("answers what was sent, and is shown with its rules and its count of notifications", async () => {
    const body = { name, description: "links", tags: ["a", "b"], type: eventJson("link") };
    expect(await json("POST", triggersPath, body)).toMatchObject({ status: 200, body: { trigger: body } });
    await rules.createRule({ rule: { name: `rule of ${name}`, triggerNames: [name] } });
    const etag = expect.stringMatching(/^[\w-]{16}$/);
    const shown = { ...body, etag, trouble: "", ruleNames: [`rule of ${name}`], recentNotificationCount: "0" };
    expect((await json("GET", path)).body).toEqual({ trigger: shown });
  });

  test("needs no more than a name and a type; all else is empty", async () => {
    const { body } = await json("POST", triggersPath, { name, type: eventJson("x") });
    expect(body.trigger).toEqual({
      name,
      etag: expect.stringMatching(/^[\w-]{16}$/),
      trouble: "",
      description: "",
      tags: [],
      type: eventJson("x"),
      ruleNames: [],
      recentNotificationCount: "0",
    });
  });

  test("with a name that is taken is 409, and changes nothing", async () => {
    await triggers.createTrigger({ trigger: { name, type: eventTrigger("x") } });
    const answer = await json("POST", triggersPath, { name, description: "other", type: eventJson("y") });
    expect(answer).toMatchObject({ status: 409, body: { code: 6 } });
    expect((await triggers.getTrigger({ name })).trigger?.description).toBe("");
  });

  test("is found by its name however its characters are written, and characters that are not seen are refused", async () => {
    const type = eventJson("x");
    const { body } = await json("POST", triggersPath, { name: `${name} A\u030a`, type });
    expect(body.trigger.name).toBe(`${name} \u00c5`);
    expect((await json("GET", `${path}%20A%CC%8A`)).status).toBe(200);
    await rules.createRule({ rule: { name: `of ${name} A\u030a`, triggerNames: [`${name} A\u030a`] } });
    expect((await json("DELETE", `${path}%20%C3%85`)).status).toBe(412);
    expect(await json("POST", triggersPath, { name: `${name} \u00c5`, type })).toMatchObject({ status: 409 });
    expect(await json("POST", triggersPath, { name: `${name}\u200b`, type })).toMatchObject(
      refused("name: must not contain characters without width"),
    );
  });

  const clause = { contains: { field: "name", value: "x" } };
  const nested = (depth: number) => {
    let inner: object = clause;
    for (let i = 1; i < depth; i++) inner = { not: { clause: inner } };
    return { event: { query: { clause: inner } } };
  };
  test.each([
    { event: { query: { clause: { and: { clauses: [clause, { not: { clause } }] } }, matchers: [] } } },
    { event: { query: { clause: { equals: { field: "entity.name", value: { stringVal: "r1" } } }, matchers: [] } } },
    {
      event: {
        query: { clause: { in: { field: "severity", values: [{ numberVal: 4 }, { numberVal: 5 }] } }, matchers: [] },
      },
    },
    { metricThreshold: { metricName: "cpu", entityQuery: null, max: 0.9, metricClause: null } },
    {
      metricThreshold: {
        metricName: "cpu",
        entityQuery: { clause: { withIds: { ids: [] } } },
        min: 1,
        max: 2,
        metricClause: { filter: { field: "labels.mode", operation: "OP_EQUALS", value: "idle" } },
      },
    },
    { staleData: { metricName: "cpu", eventName: "", entityQuery: null, durationSec: "60" } },
    { staleData: { metricName: "", eventName: "beat", entityQuery: null, durationSec: "1" } },
  ])("may look at %j, and shows it as it was sent", async (type) => {
    expect(await json("POST", triggersPath, { name, type })).toMatchObject({ status: 200 });
    expect((await json("GET", path)).body.trigger.type).toEqual(type);
  });

  const stale = (more: object) => ({ staleData: { durationSec: "60", ...more } });
  const threshold = (more: object) => ({ metricThreshold: { metricName: "cpu", ...more } });
  const noField = { clause: { filter: { field: "", operation: "OP_EQUALS", value: "x" } } };
  test.each([
    ["no name", { name: "" }, "name: is required"],
    ["a name of 256 characters", { name: "x".repeat(256) }, "name: must be at most 255 characters"],
    ["a name with a control character", { name: "a\tb" }, "name: must not contain control characters"],
    ["a description of more than 4 KiB", { description: "x".repeat(4097) }, "description: "],
    ["101 tags", { tags: Array(101).fill("t") }, "tags: "],
    ["no type", { type: undefined }, "type: is required"],
    ["an empty type", { type: {} }, "type: must hold exactly one of event, metricThreshold, staleData"],
    ["two sources", { type: { ...eventJson("x"), ...stale({ metricName: "m" }) } }, "type.staleData: only one of"],
    ["an unknown source", { type: { carrierPigeon: {} } }, "type.carrierPigeon"],
    [
      "an unknown operation",
      { type: { event: { query: { clause: { equal: { field: "name", value: { stringVal: "x" } } } } } } },
      'unknown field "equal"; must be one of and, or, not, equals, greaterAndEquals, lessAndEquals, in, contains, startsWith, endsWith',
    ],
    ["no query", { type: { event: {} } }, "type.event.query: is required"],
    ["no clause", { type: { event: { query: {} } } }, "type.event.query.clause: is required"],
    [
      "an empty clause",
      { type: { event: { query: { clause: {} } } } },
      "type.event.query.clause: must hold exactly one",
    ],
    [
      "a comparison of no field",
      { type: { event: { query: { clause: { and: { clauses: [{ contains: { field: "", value: "x" } }] } } } } } },
      "type.event.query.clause.and.clauses[0].contains.field: is required",
    ],
    [
      "no comparison",
      { type: { event: { query: { clause: { or: { clauses: [] } } } } } },
      "type.event.query.clause.or.clauses: ",
    ],
    ["clauses more than 32 deep", { type: nested(33) }, "must not lie deeper than 32 clauses"],
    ["no metric", { type: { metricThreshold: { min: 1 } } }, "type.metricThreshold.metricName: is required"],
    [
      "a series by what is no label",
      { type: threshold({ max: 1, metricClause: { filter: { field: "units", operation: "OP_EXISTS" } } }) },
      "type.metricThreshold.metricClause.filter.field: must be labels. and a key",
    ],
    ["no bound", { type: threshold({}) }, "type.metricThreshold: must have min, max or both"],
    ["bounds that nothing lies between", { type: threshold({ min: 2, max: 1 }) }, "min not above max"],
    [
      "a broken query of entities",
      { type: threshold({ max: 1, entityQuery: noField }) },
      "type.metricThreshold.entityQuery.clause.filter.field: is required",
    ],
    [
      "a severity that there is none of",
      { type: { event: { query: { clause: { equals: { field: "severity", value: { stringVal: "FATAL" } } } } } } },
      'type.event.query.clause.equals.field: compares severity with "fatal", which is none of SEVERITY_DEFAULT (0), ',
    ],
    ["nothing that is missed", { type: stale({}) }, "type.staleData: must have metricName, eventName or both"],
    ["no duration", { type: { staleData: { metricName: "m" } } }, "type.staleData.durationSec: is required"],
    ["a negative duration", { type: stale({ metricName: "m", durationSec: -1 }) }, "type.staleData.durationSec: "],
    [
      "a duration of more than 400 days",
      { type: stale({ metricName: "m", durationSec: 34_560_001 }) },
      "type.staleData.durationSec: must be greater than or equal to 1 and less than or equal to 34560000",
    ],
  ])("with %s is refused with its place", async (_what, change, message) => {
    const answer = await json("POST", triggersPath, { name, type: eventJson("x"), ...change });
    expect(answer).toMatchObject(refused(message));
    await expect(triggers.getTrigger({ name })).rejects.toMatchObject({ code: 5 });
  });
});

test("a stored duration of more than 400 days counts as 400 days, and can be sent back", async () => {
  const stored = { staleData: { metricName: "cpu", durationSec: "34560000" } };
  await json("POST", triggersPath, { name: "rare", type: stored });
  await server.database.sql`
    update triggers set type = jsonb_set(type, '{staleData,durationSec}', '"99999999999"')
    where tenant_id = ${tenant.id} and name = 'rare'`;
  const { body } = await json("GET", `${triggersPath}/rare`);
  expect(body.trigger.type.staleData.durationSec).toBe("34560000");
  expect((await json("PUT", `${triggersPath}/rare`, body.trigger)).status).toBe(200);
});

test("a trigger shows what of it would be refused today, or cannot be read", async () => {
  const store = (type: object) =>
    server.database
      .sql`update triggers set type = ${JSON.stringify(type)}::jsonb where tenant_id = ${tenant.id} and name = 'old'`;
  await json("POST", triggersPath, { name: "old", type: eventJson("x") });
  await store({ event: { query: { clause: { equals: { field: "severity", value: { stringVal: "FATAL" } } } } } });
  expect((await json("GET", `${triggersPath}/old`)).body.trigger.trouble).toContain('compares severity with "fatal"');
  await store({ event: 7 });
  const { status, body } = await json("GET", `${triggersPath}/old`);
  expect({ status, type: body.trigger.type }).toMatchObject({
    status: 200,
    type: { metricThreshold: { metricName: "" } },
  });
  expect(body.trigger.trouble).not.toBe("");
});

describe("an update", () => {
  const before = { description: "before", tags: ["t"], type: eventJson("before") };
  beforeEach(async () => {
    await json("POST", triggersPath, { name, ...before });
  });

  test.each([
    [{}],
    [{ description: "after" }],
    [{ tags: [] }],
    [{ description: "" }],
    [{ type: { metricThreshold: { metricName: "m", entityQuery: null, max: 1 } } }],
    [{ description: "after", tags: ["x"], type: eventJson("after") }],
  ])("changes %j and nothing else", async (change) => {
    const { body, status } = await json("PUT", path, change);
    expect(status).toBe(200);
    expect(body.trigger).toMatchObject({ name, ...before, ...change });
    expect((await json("GET", path)).body).toEqual(body);
  });

  test("takes back what it has shown, with what only the service sets", async () => {
    await rules.createRule({ rule: { name: `rule of ${name}`, triggerNames: [name] } });
    const { body } = await json("GET", path);
    expect(await json("PUT", path, body.trigger)).toMatchObject({ status: 200, body });
  });

  test("by its mask alone: what it does not name stays", async () => {
    const answer = await triggers.updateTrigger({
      trigger: { name, description: "not named", tags: ["after"] },
      updateMask: { paths: ["tags"] },
    });
    expect(answer.trigger).toMatchObject({ description: "before", tags: ["after"] });
  });

  test("never changes the name, nor clears the type", async () => {
    expect(await json("PUT", path, { name: "other" })).toMatchObject(refused("name: differs"));
    expect(await json("PUT", path, { type: null })).toMatchObject(refused("type: is required"));
    expect(await json("PUT", path, { type: {} })).toMatchObject(refused("type: must hold exactly one of"));
  });

  test("of a trigger that is not there is 404", async () => {
    expect(await json("PUT", `${triggersPath}/none`, { description: "x" })).toMatchObject({ status: 404 });
  });
});

describe("a deletion", () => {
  test("answers {}, and the trigger is gone", async () => {
    await json("POST", triggersPath, { name, type: eventJson("x") });
    expect(await json("DELETE", path)).toMatchObject({ status: 200, body: {} });
    expect(await json("GET", path)).toMatchObject({ status: 404, body: { code: 5 } });
    expect(await json("DELETE", path)).toMatchObject({ status: 404, body: { code: 5 } });
  });

  test("of a trigger in use is 412 and names rules; once they are gone it succeeds", async () => {
    await json("POST", triggersPath, { name, type: eventJson("x") });
    const users = ["a", "b", "c", "d"].map((each) => `${each} of ${name}`);
    for (const user of users) await rules.createRule({ rule: { name: user, triggerNames: [name] } });
    const answer = await json("DELETE", path);
    expect(answer).toMatchObject({ status: 412, body: { code: 9 } });
    expect(answer.body.message).toContain(`is used by rules "${users[0]}", "${users[1]}", "${users[2]}" and others`);
    for (const user of users.slice(1)) await rules.deleteRule({ name: user });
    await rules.updateRule({ rule: { name: users[0] as string }, updateMask: { paths: ["triggerNames"] } });
    expect(await json("DELETE", path)).toMatchObject({ status: 200 });
  });
});

describe("the list", async () => {
  const own = await testTenant(server.database.sql);
  const list = async (query: string) => {
    const { status, body } = await v1(server.url, own.headers)("GET", `${triggersPath}${query}`);
    expect(status).toBe(200);
    expect(body.totalCount).toBe(String(body.triggers.length));
    return body.triggers.map((each: { name: string }) => each.name);
  };
  const mine = transport(server.target, "grpc", own.headers);
  const fill = createClient(TriggerService, mine);
  await fill.createTrigger({
    trigger: { name: "Link down", description: "Core ROUTERS", tags: ["Net"], type: eventTrigger("x") },
  });
  const max = { case: "metricThreshold", value: { metricName: "cpu", max: 1 } } as const;
  await fill.createTrigger({ trigger: { name: "cpu 100%_", tags: ["host", "networks"], type: { source: max } } });
  const stale = { case: "staleData", value: { metricName: "cpu", durationSec: 60n } } as const;
  await fill.createTrigger({ trigger: { name: "ÄRGER", description: "routers", type: { source: stale } } });
  await createClient(RuleService, mine).createRule({
    rule: { name: "Night Watch", triggerNames: ["ÄRGER", "Link down"] },
  });

  test.each([
    ["", ["Link down", "cpu 100%_", "ÄRGER"]],
    ["?name=LINK", ["Link down"]],
    ["?name=%C3%A4rg", ["ÄRGER"]],
    ["?name=100%25_", ["cpu 100%_"]],
    ["?name=%25", ["cpu 100%_"]],
    ["?name=nobody", []],
    ["?description=routers", ["Link down", "ÄRGER"]],
    ["?type=event", ["Link down"]],
    ["?type=THRESHOLD", ["cpu 100%_"]],
    ["?ruleNames=watch", ["Link down", "ÄRGER"]],
    ["?ruleNames=day", []],
    ["?tags=net", ["Link down", "cpu 100%_"]],
    ["?tags=et%22", []],
    ["?tags=net&type=event", ["Link down"]],
    ["?tags=net&description=routers&ruleNames=night&name=down&type=ev", ["Link down"]],
    ["?tags=net&name=%C3%A4", []],
  ])("of %s", async (query, names) => {
    expect(await list(query)).toEqual(names);
  });

  test("shows the rules of each", async () => {
    const { triggers } = await fill.listTriggers({});
    expect(triggers.map(({ ruleNames }) => ruleNames)).toEqual([["Night Watch"], [], ["Night Watch"]]);
  });

  test("pages within a query, and refuses a token of another one", async () => {
    const first = await fill.listTriggers({ description: "routers", pageSize: 1 });
    expect(first).toMatchObject({ totalCount: 2n, triggers: [{ name: "Link down" }] });
    const rest = { description: "routers", pageToken: first.nextPageToken };
    expect(await fill.listTriggers(rest)).toMatchObject({
      totalCount: 2n,
      nextPageToken: "",
      triggers: [{ name: "ÄRGER" }],
    });
    const other = fill.listTriggers({ description: "router", pageToken: first.nextPageToken });
    await expect(other).rejects.toMatchObject({ code: 3, rawMessage: expect.stringContaining("pageToken") });
  });

  test.each(["?name=a&name=b", "?pageSize=-1", "?colour=red"])("of %s is refused", async (query) => {
    expect(await json("GET", `${triggersPath}${query}`)).toMatchObject({ status: 400 });
  });
});
