import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { id, headers } = await testTenant(server.database.sql);
const call = v1(server.url, headers);

const rule = { name: "r", enabled: false };
const trigger = (value: unknown) => ({
  name: "t",
  type: { event: { query: { clause: { equals: { field: "status", value } } } } },
});
const event = { name: "e", dimensions: { source: "a" }, severity: "SEVERITY_INFO" };

test.each<[string, string, string, unknown, string]>([
  ["a verb with two letters exchanged", "POST", "/v1/events:serach", {}, '; did you mean "/v1/events:search"?'],
  ["a path in the singular", "GET", "/v1/notification/rule", undefined, '; did you mean "/v1/notification/rules"?'],
  ["a path without its part", "GET", "/v1/silences", undefined, '; did you mean "/v1/notification/silences"?'],
  ["where Alertmanager's alerts are", "GET", "/v1/alerts", undefined, '; did you mean "/api/v2/alerts"?'],
  ["one of its silences", "GET", "/v1/silences/x", undefined, '; did you mean "/v1/notification/silences"?'],
  ["an acknowledgement", "POST", "/v1/alerts/x/acknowledge", {}, '; did you mean "/v1/event-management/status"?'],
  ["one of an event", "POST", "/v1/events/x/acknowledge", {}, '; did you mean "/v1/event-management/status"?'],
  ["one as a verb", "POST", "/v1/events:acknowledge", {}, '; did you mean "/v1/event-management/status"?'],
  ["a path of one thing", "GET", "/v1/notification/ruels/on-call", undefined, '"/v1/notification/rules/on-call"?'],
  ["an item without its list", "POST", "/v1/data-receiver/events", event, '; did you mean {"events":[{"name":…}]}?'],
  [
    "a query without its place",
    "POST",
    "/v1/events:search",
    { severities: [] },
    '; did you mean {"query":{"severities":…}}?',
  ],
  [
    "a list of names without that word",
    "POST",
    "/v1/notification/rules",
    { ...rule, triggers: [] },
    '; did you mean "triggerNames"?',
  ],
  [
    "another such list",
    "POST",
    "/v1/notification/rules",
    { ...rule, destinations: [] },
    '; did you mean "destinationNames"?',
  ],
  [
    "a text for a value with its kind",
    "POST",
    "/v1/notification/triggers",
    trigger("X"),
    'expected an object such as {"stringVal":"…"}, found "X"',
  ],
  [
    "a number for one",
    "POST",
    "/v1/notification/triggers",
    trigger(5),
    'expected an object such as {"numberVal":1}, found 5',
  ],
  [
    "a boolean for one",
    "POST",
    "/v1/notification/triggers",
    trigger(true),
    'expected an object such as {"boolVal":true}, found true',
  ],
  [
    "a time as RFC 3339",
    "POST",
    "/v1/data-receiver/events",
    { events: [{ ...event, timestamp: "2026-11-27T04:00:00Z" }] },
    "events[0].timestamp: must be an integer: times are ms since the epoch, such as 1767225600000",
  ],
  [
    "a time in ms where a text is due",
    "POST",
    "/v1/metrics:search",
    { timeRange: { start: 1795942500000 } },
    "expected a time such as 2026-11-29T09:00:00Z, found 1795942500000",
  ],
  [
    "matchers beside a trigger's type",
    "POST",
    "/v1/notification/triggers",
    { name: "t", type: {}, matchers: ["a=b"] },
    'unknown field "matchers"; it belongs in type.event.query.matchers, or in the rule\'s own matchers',
  ],
  [
    "matchers in a trigger's type",
    "POST",
    "/v1/notification/triggers",
    { name: "t", type: { matchers: ["a=b"] } },
    'unknown field "matchers"; it belongs in type.event.query.matchers, or in the rule\'s own matchers',
  ],
  [
    "matchers in its source",
    "POST",
    "/v1/notification/triggers",
    { name: "t", type: { event: { matchers: ["a=b"] } } },
    'unknown field "matchers"; did you mean {"query":{"matchers":…}}?',
  ],
  [
    "a search in the words of triggers",
    "POST",
    "/v1/events:search",
    { query: { clause: { equals: { field: "name", value: { stringVal: "a" } } } } },
    'did you mean {"filter":{"field":…,"operation":…,"value":…}}?',
  ],
  [
    "a trigger in the words of searches",
    "POST",
    "/v1/notification/triggers",
    { name: "t", type: { event: { query: { clause: { filter: { field: "name" } } } } } },
    'did you mean {"equals":{"field":…,"value":…}}?',
  ],
  [
    "a severity that there is not",
    "POST",
    "/v1/events:search",
    { query: { clause: { filter: { field: "severity", operation: "OP_EQUALS", value: "critcal" } } } },
    'compares severity with "critcal", which is none of SEVERITY_DEFAULT (0), ',
  ],
  [
    "a status that there is not",
    "POST",
    "/v1/events:search",
    { query: { clause: { filter: { field: "status", operation: "OP_EQUALS", value: "OPENED" } } } },
    'compares status with "OPENED", which is none of STATUS_',
  ],
  [
    "a word of Alertmanager's",
    "POST",
    "/v1/notification/rules",
    { name: "r", sendResolved: true },
    'unknown field "sendResolved"; did you mean "sendUpdates"?',
  ],
  [
    "another product",
    "POST",
    "/v1/notification/destinations",
    { name: "d", type: { PagerDuty: {} } },
    '; did you mean "incidentPaging"?',
  ],
])("%s is answered with what was meant", async (_, method, path, body, hint) => {
  const answer = await call(method, path, body);
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(answer.body.message).toContain(hint);
});

test.each([
  ["slack", "teamChat"],
  ["teams", "officeChat"],
  ["pagerduty", "incidentPaging"],
  ["servicenow", "itsm"],
])("a destination of %s is read as %s, and refused with both", async (product, kind) => {
  const answers = await Promise.all(
    [product, kind].map((name) => call("POST", "/v1/notification/destinations", { name: "d", type: { [name]: {} } })),
  );
  const [read, own] = answers.map(({ status, body }) => [status, body.message]);
  expect(read).toEqual(own);
  expect(own).toEqual([400, expect.stringMatching(new RegExp(`^type\\.${kind}\\.\\w+: `))]);
  for (const names of [
    [product, kind],
    [kind, product],
  ]) {
    const type = Object.fromEntries(names.map((name) => [name, {}]));
    const both = await call("POST", "/v1/notification/destinations", { name: "d", type });
    expect(both).toMatchObject({ status: 400, body: { code: 3 } });
    expect(both.body.message).toContain(`"${names[1]}" occurs twice`);
  }
});

test.each([
  ["USER", "read_only_user", "POST", { name: "r" }, "role read_only_user", "CreateRule; who may: manager"],
  ["DATA_INGEST", null, "GET", undefined, "type DATA_INGEST", "ListRules; who may: read_only_user, user, manager"],
] as const)("a key of %s %s is told who may", async (type, role, method, body, who, may) => {
  const weaker = await keyHeaders(server.database.sql, id, type, role);
  const answer = await v1(server.url, weaker)(method, "/v1/notification/rules", body);
  const rule = `a client of ${who} may not call belfry.notifications.v1.RuleService/${may}`;
  expect([answer.status, answer.body.message]).toEqual([403, rule]);
});
