import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { tool } from "../integrations/calls.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { secrets } from "./kinds.ts";
import { destinationsPath, eventJson, rulesPath, triggersPath } from "./samples.ts";

const server = await testServer({ BELFRY_PUBLIC_URL: "https://belfry.example.com" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const call = v1(server.url, tenant.headers);
const path = `${rulesPath}:preview`;

const made = async (at: string, body: object) => expect(await call("POST", at, body)).toMatchObject({ status: 200 });

async function occurrenceId(call: ReturnType<typeof v1>, name: string): Promise<string> {
  const { body } = await call("POST", "/v1/events:search", {
    query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value: name } } },
  });
  return body.results[0].occurrences[0].id;
}

const disk = {
  name: "disk <full>",
  dimensions: { host: "web-1", "rack.row": "r1" },
  severity: "SEVERITY_ERROR",
  status: "STATUS_OPEN",
  summary: "97 %",
  type: "storage",
};
let id = "";
beforeAll(async () => {
  await made("/v1/data-receiver/events", { events: [{ ...disk, timestamp: String(Date.now()) }] });
  id = await occurrenceId(call, disk.name);
  await made(triggersPath, { name: "links", type: eventJson("link") });
  await made(triggersPath, { name: "disks", type: eventJson("disk") });
  await made(destinationsPath, {
    name: "mail",
    type: { email: { to: "ops@example.com", subject: "{{{event.name}}}", body: "{{{event.summary}}}" } },
  });
  await made(destinationsPath, { name: "chat", type: { teamChat: { channel: "ops", token: secrets.token } } });
});

const shown = async (body: object) => await call("POST", path, { occurrenceId: id, ...body });

describe("a message that is not stored", () => {
  test("is rendered for an occurrence as deliveries are, and text is not escaped for HTML", async () => {
    const message = "{{event.name}} {{{event.name}}} on {{{entity.dimensions.rack.row}}} by {{{rule.name}}}";
    expect(await shown({ message, ruleName: "page" })).toMatchObject({
      status: 200,
      body: { text: "disk <full> disk <full> on r1 by page", emptyNames: [], previews: [], matches: false },
    });
  });

  test("has an alert's labels, annotations and source, whose keys may hold full stops", async () => {
    const labels = { alertname: "PodDown", "k8s.pod.uid": "u-1", note: "one\ntwo\u0000" };
    const alert = { labels, annotations: { "run.book": "see\n\tthis" }, generatorURL: "http://prometheus/graph" };
    const { headers } = await testTenant(sql);
    const call = v1(server.url, headers);
    expect((await tool(server, headers)("POST", "/api/v2/alerts", [alert])).status).toBe(200);
    const message =
      "{{event.labels.k8s.pod.uid}} {{{event.labels.note}}} {{event.annotations.run.book}} {{event.generator_url}} {{event.fields.k8s.pod.uid}} {{event.start_time}}";
    const { body } = await call("POST", path, { message, occurrenceId: await occurrenceId(call, "PodDown") });
    expect(body.text).toMatch(
      /^u-1 one\ntwo {2}see\n\tthis http:\/\/prometheus\/graph u-1 \d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/,
    );
    expect(body.variables).toContainEqual({ name: "event.labels.k8s.pod.uid", value: "u-1" });
  });

  test("shows what a webhook's body makes of it", async () => {
    const webhookBody = '{"of": {{count}}, "what": "{{event.name}} \\"x\\""}';
    const { body } = await shown({ webhookBody, destinationNames: ["mail"], grouped: true });
    expect(body.previews).toMatchObject([{ destination: "mail" }, { destination: "", subject: "" }]);
    expect(JSON.parse(body.previews[1].body)).toMatchObject({ of: 3 });
  });

  test("shows what each destination would get, in their order, and no secret", async () => {
    const { body } = await shown({ message: "{{{event.severity}}}", destinationNames: ["chat", "mail"] });
    expect(body.previews).toMatchObject([
      { destination: "chat", subject: "", body: "ERROR" },
      { destination: "mail", subject: "disk <full>", body: "97 %" },
    ]);
    expect(JSON.stringify(body)).not.toContain("xoxb");
  });

  test("names the first of its triggers that matches, and says why the others do not", async () => {
    const { body } = await shown({ message: "{{{trigger.name}}}", triggerNames: ["links", "disks"] });
    expect(body).toMatchObject({
      text: "disks",
      matches: true,
      steps: [
        { step: "trigger", result: "stopped", path: "type.event.query.clause.contains" },
        { step: "trigger", result: "passed" },
      ],
    });
    expect((await shown({ message: "{{{trigger.name}}}", triggerNames: ["links"] })).body).toMatchObject({
      text: "links",
      matches: false,
    });
  });

  test("says which of its names are empty here; those of sections that are left out are not asked for", async () => {
    const message =
      "{{{event.body}}}{{event.nmae}}{{#clear}}{{{metric.name}}}{{/clear}}{{{event.body}}}{{{event.type}}}";
    expect((await shown({ message })).body).toMatchObject({
      text: "storage",
      emptyNames: ["event.body", "event.nmae"],
    });
  });

  test("says without a text what a rule without one says", async () => {
    expect((await shown({})).body.text).toBe(`ERROR: 97 % (${await entityName()})`);
  });

  test("may name all that the documentation lists, each with its value for the occurrence", async () => {
    const { body } = await shown({ destinationNames: ["chat", "mail"] });
    const values = new Map<string, string>(
      body.variables.map(({ name, value }: Record<string, string>) => [name, value]),
    );
    const table = readFileSync("docs/templates.md", "utf8").split("| variable | value |")[1]?.split("\n\n")[0] ?? "";
    const rows = table.split("\n").map((row) => row.split("|")[1] ?? "");
    const documented = rows.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
    expect(documented).toContain("event.severity");
    const listed = documented.filter((name) => !name.includes("<"));
    expect(listed.filter((name) => !values.has(name))).toEqual([]);
    expect(
      [...values.keys()]
        .filter(
          (name) =>
            !/^(entity\.dimensions|destination|event\.(labels|annotations|fields)|(group|common)(Labels|Annotations))\./.test(
              name,
            ),
        )
        .toSorted(),
    ).toEqual(listed.toSorted());
    expect(Object.fromEntries(values)).toMatchObject({
      "event.severity": "ERROR",
      "entity.dimensions.rack.row": "r1",
      "destination.teamChat.channel": "ops",
      "destination.email.to": "ops@example.com",
      "metric.name": "",
    });
    expect(values.has("destination.teamChat.token")).toBe(false);
  });

  test("is rendered for a made-up event where none is named, which is held against no trigger", async () => {
    const { body } = await call("POST", path, {
      message: "{{{event.name}}} {{{trigger.name}}}",
      triggerNames: ["disks"],
    });
    expect(body).toMatchObject({ text: "sample event disks", matches: false, steps: [] });
  });

  test("is cut where a delivery's would be", async () => {
    const { body } = await shown({ message: "x".repeat(65_536), destinationNames: ["chat"] });
    expect(body.text).toHaveLength(65_536);
    expect(body.previews[0].body).toHaveLength(4000);
  });
});

const entityName = async () =>
  (await call("POST", "/v1/events:search", { query: {} })).body.results[0].entityName as string;

describe("refused", () => {
  test.each([
    ["a tag that is not closed", { message: "{{{event.name}}" }, "message", /unclosed tag at line 1, column/],
    ["a section that is not closed", { message: "a\n{{#clear}}b" }, "message", /unclosed section "clear" at line 2/],
    ["a partial", { message: "{{> a}}" }, "message", /has a partial/],
    [
      "a trigger that there is none of",
      { triggerNames: ["none"] },
      "triggerNames[0]",
      /there is no trigger named "none"/,
    ],
    [
      "a destination likewise",
      { destinationNames: ["chat", "no"] },
      "destinationNames[1]",
      /there is no destination named/,
    ],
    ["a webhook's body that is no template", { webhookBody: "{{#alerts}}" }, "webhookBody", /unclosed section/],
    ["a webhook's body that makes no JSON", { webhookBody: "none" }, "webhookBody", /^makes no JSON: /],
    ["a message that is too long", { message: "x".repeat(65_537) }, "message", /65536 bytes/],
  ])("%s, at its field", async (_what, body, field, description) => {
    const answer = await shown(body);
    expect(answer.status).toBe(400);
    const [detail] = answer.body.details as { fieldViolations: { field: string; description: string }[] }[];
    expect(detail?.fieldViolations).toMatchObject([{ field, description: expect.stringMatching(description) }]);
  });

  test("an occurrence that there is none of, and one of another tenant", async () => {
    const other = await testTenant(sql);
    for (const [at, headers] of [
      ["x", tenant.headers],
      [`${id}0`, tenant.headers],
      [id, other.headers],
    ] as const) {
      const answer = await v1(server.url, headers)("POST", path, { message: "a", occurrenceId: at });
      expect(answer).toMatchObject({ status: 404, body: { code: 5 } });
    }
  });

  test("a client that only sends data", async () => {
    const headers = await keyHeaders(sql, tenant.id, "DATA_INGEST", null);
    expect((await v1(server.url, headers)("POST", path, { occurrenceId: id })).status).toBe(403);
  });
});
