import { expect, test } from "vitest";
import { onCitus } from "./support/citus.ts";
import { testDatabase } from "./support/database.ts";
import { plain } from "./support/our-statements.ts";
import { described, growingStatements } from "./support/plan-scenarios.ts";
import { sentStatements } from "./support/sent-statements.ts";
import { testServer } from "./support/server.ts";
import type { RanStatement } from "./support/statement-log.ts";
import { testTenant } from "./support/tenant.ts";
import { v1 } from "./support/v1.ts";

const filter = (field: string, value: unknown, operation = "OP_EQUALS") => ({ filter: { field, operation, value } });
const host = filter("dimensions.host", "name-5");
const page = { limit: 20 };
const entities = (clause: object, more: object = {}) => [
  "/v1/modelcontext/entities:search",
  { search_input: { query: { clause }, page_input: page, ...more } },
];
const window = {
  name: "w",
  maintenanceState: 300,
  runMode: "MANUAL",
  schedule: { start: Date.now() + 60_000, duration: 60_000 },
};

type Question = readonly [path: string, body?: object];

const part = filter("dimensions.host", "name-250", "OP_CONTAINS");
const named = filter("name", "name-6");

/** Where PostgreSQL chooses between an index of the tenant and that of its keys: it reads only rows of the tenant. */
const withinTenant = [
  entities(part),
  entities({ or: { clauses: [part, named] } }),
  entities({ or: { clauses: [{ and: { clauses: [host, named] } }, named] } }),
] as unknown as Question[];

/** Searches whose answer stays as small, and lists by pages or by a key; a body makes a POST. */
const questions: readonly Question[] = [
  entities(host),
  entities(host, { group_by: [{ field: "name" }] }),
  entities(filter("host", "name-5")),
  entities(filter("name", "name-5")),
  entities(filter("name", "name-250", "OP_CONTAINS")),
  entities(filter("coreProperties.host", "name-5")),
  entities(filter("customProperties.owner", "x")),
  entities({ in: { field: "dimensions.host", values: Array.from({ length: 20 }, (_, i) => `name-${i}`) } }),
  entities({ or: { clauses: [host, filter("customProperties.owner", "x")] } }),
  entities(filter("name", "name-", "OP_STARTS_WITH")),
  entities(filter("customProperties.cost", 7, "OP_GREATER_OR_EQ")),
  entities(filter("customProperties.spare", true)),
  entities({ or: { clauses: [host, named] } }),
  entities({ or: { clauses: [host, { withIds: { ids: ["AAAAAAAAAAAAAAAAAAAAAAAAAAA="] } }] } }),
  entities({ and: { clauses: [host, filter("name", "name-", "OP_STARTS_WITH")] } }),
  entities({ and: { clauses: [host, named] } }),
  ["/v1/modelcontext/customproperties:set", { input: { query: { clause: host } }, properties: { a: "b" } }],
  ["/v1/modelcontext/customproperties:delete", { input: { query: { clause: host } }, property_keys: ["a"] }],
  ["/v1/modelcontext/maintwindows:preview", { specification: { ...window, query: { clause: host } } }],
  ["/v1/modelcontext/maintwindows:list", { page_input: page }],
  ["/v1/modelcontext/custompropertyupdaters:list", { page_input: page }],
  [
    "/v1/metrics:search",
    {
      entityClause: host,
      timeRange: { start: "2026-01-01T11:00:00.000Z", end: "2026-01-01T12:00:00.000Z" },
      downsample: { aggregator: "MEAN", period: "1800s" },
    },
  ],
  ["/v1/dictionary/metrics:batchGet", { names: ["name-5"] }],
  ["/v1/user-mgmt/end-user-account-ids", { email: "name-5" }],
  ["/v1/user-mgmt/end-user-account-ids", { firstName: "name-5" }],
  ...["entity_fields", "event_fields", "metrics"].flatMap((kind): [string][] => [
    [`/v1/dictionary/${kind}?pageSize=20`],
    [`/v1/dictionary/${kind}/name-5`],
  ]),
  ...["rules", "triggers", "destinations"].flatMap((kind): [string][] => [
    [`/v1/notification/${kind}?pageSize=20`],
    [`/v1/notification/${kind}/name-5`],
  ]),
  ...["?", "?rule=name-5&", "?destination=name-5&", "?status=FAILED&destination=name-5&"].map((by): [string] => [
    `/v1/notification/deliveries${by}pageSize=20`,
  ]),
  ...["?", "?rpc=CreateRule&", "?client=name-5&"].map((by): [string] => [`/v1/audit-log${by}pageSize=20`]),
  ["/v1/notification/silences?pageSize=20"],
  ["/v1/credentials?pageSize=20"],
  ["/v1/api-clients?pageSize=20"],
  ["/v1/api-clients/name-5/keys?pageSize=20"],
  ["/v1/user-mgmt/end-user-accounts?pageSize=20"],
  ["/v1/user-mgmt/end-user-groups?pageSize=20"],
  ["/v1/user-mgmt/end-user-groups/name-5"],
] as never;

/** The tenant with few has 250 rows of each; all have 20,000 and more. */
const withinRowsMax = 1000;

const textOf = ([path, body]: Question) => `${path} ${JSON.stringify(body)}`;

/** Statements of the calls that may read a whole range: totals, and what has no index. */
const wholes: readonly { begin: RegExp; why: string }[] = [
  { begin: /^select count\(\*\)/, why: "the total of a list" },
  { begin: /^select \(select count\(\*\) from due_deliveries/, why: "the total of a list" },
  {
    begin: /^select \* from \( \(select id, created_ms/,
    why: "deliveries that wait, and done ones by a name, have no such index",
  },
  {
    begin: /^select "name" from "rules" .*"mute_during_maintenance"/,
    why: "a window's preview: the rules that it mutes",
  },
  { begin: /^select id, name, description, enabled, sequence/, why: "updaters in their order, which no index has" },
];

test.skipIf(onCitus)(
  "no search or list by pages reads more where a tenant has 20,000 of each, whatever PostgreSQL knows of them",
  async () => {
    const server = await testServer({});
    const tenant = await testTenant(server.database.sql);
    const call = v1(server.url, tenant.headers);
    const statements = new Map<string, RanStatement>();
    const refused: string[] = [];
    for (const [path, body] of [...questions, ...withinTenant]) {
      const sent = await sentStatements(tenant.id, async () => {
        const { status, body: answer } = await call(body === undefined ? "GET" : "POST", path, body);
        if (status !== 200 && answer.code !== 5) refused.push(`${path}: ${JSON.stringify(answer).slice(0, 300)}`);
      });
      for (const each of sent) {
        const text = plain(each.text);
        if (!/^(?:select|with)\b/.test(text) || wholes.some(({ begin }) => begin.test(text))) continue;
        statements.set(`${each.text}${JSON.stringify(each.parameters)}`, {
          ...each,
          file: textOf([path, body]),
        });
      }
    }
    expect(refused).toEqual([]);
    const texts = [...statements.values()].map(({ text }) => text);
    const among = texts.flatMap((text) => text.match(/\b[a-z_]+\b/g) ?? []);
    const { url, sql } = await testDatabase({ statementTimeoutMs: 120_000 });
    const { growing, measured, failed } = await growingStatements(url, sql, [...statements.values()], among);
    expect([...failed]).toEqual([]);
    expect(measured).toBeGreaterThan(4 * statements.size);
    const least = new Set(withinTenant.map(textOf));
    const held = growing.filter(({ statement, small }) => !least.has(statement.file) || small.rows > withinRowsMax);
    expect(held.map(described)).toEqual([]);
  },
);
