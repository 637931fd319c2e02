import { beforeAll, describe, expect, test } from "vitest";
import { eventIds, idText } from "../../src/entities/identity.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { secrets } from "./kinds.ts";
import { eventJson } from "./samples.ts";

const server = await testServer({ BELFRY_PUBLIC_URL: "https://belfry.example.com" });
const tenant = await testTenant(server.database.sql);

async function call(method: string, path: string, body?: object, headers: Record<string, string> = tenant.headers) {
  const answer = await fetch(`${server.url}/v1${path}`, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, never> };
}
const notification = "/notification";
const made = async (path: string, body: object) =>
  expect(await call("POST", path, body)).toMatchObject({ status: 200 });

await made(`${notification}/triggers`, { name: "disks", type: eventJson("disk") });
await made(`${notification}/destinations`, {
  name: "mail",
  type: { email: { to: "ops@example.com", subject: "{{{event.name}}}", body: "{{{event.summary}}} {{{url}}}" } },
});
await made(`${notification}/destinations`, {
  name: "hook",
  type: { webhook: { url: "https://hook.example.com/", headers: { authorization: secrets.header } } },
});
await made(`${notification}/destinations`, {
  name: "chat",
  type: { teamChat: { channel: "ops", token: secrets.token } },
});
await made(`${notification}/rules`, {
  name: "page",
  message: "{{{event.severity}}} {{{event.summary}}} on {{{entity.name}}}",
  triggerNames: ["disks"],
  destinationNames: ["mail", "hook", "chat"],
});

const event = {
  timestamp: String(Date.now()),
  name: "disk full",
  dimensions: { host: "web-1" },
  severity: "SEVERITY_ERROR",
  status: "STATUS_OPEN",
  summary: "97 %",
  type: "storage",
  metadataFields: { mount: "/var" },
};
const preview = `${notification}/rules/page:preview`;

interface Shown {
  previews: { destination: string; subject: string; body: string }[];
}

describe("a preview", () => {
  test("shows what each destination of the rule would get for an event as agents send it", async () => {
    const { status, body } = await call("POST", preview, { event });
    expect(status).toBe(200);
    const { previews } = body as unknown as Shown;
    expect(previews.map(({ destination }) => destination)).toEqual(["mail", "hook", "chat"]);
    const [mail, hook, chat] = previews;
    expect(mail?.subject).toBe("disk full");
    expect(mail?.body).toMatch(/^97 % https:\/\/belfry\.example\.com\/console\/#\/occurrences\//);
    expect(chat?.body).toMatch(/^ERROR 97 % on /);
    expect(JSON.parse(hook?.body ?? "")).toMatchObject({
      tenant: tenant.name,
      message: chat?.body,
      clear: false,
      rule: {
        name: "page",
        trigger_names: ["disks"],
        destination_names: ["mail", "hook", "chat"],
        repeat_interval: 3600,
      },
      trigger: { definition: { event: { query: { clause: { contains: { field: "name", value: "disk" } } } } } },
      event: { name: "disk full", severity: 4, status: 1, type: "storage", fields: { mount: "/var" } },
      entity: { dimensions: { host: "web-1" } },
    });
    expect(JSON.stringify(previews)).not.toMatch(/h3ader|xoxb/);
  });

  test("shows the same for an event that is there, by its id", async () => {
    await made("/data-receiver/events", { events: [event] });
    const sent = (await call("POST", preview, { event })).body as unknown as Shown;
    const found = await call("POST", "/events:search", { query: {} });
    const [{ id }] = (found.body as unknown as { results: [{ id: string }] }).results;
    const { status, body } = await call("POST", preview, { eventId: id });
    expect(status).toBe(200);
    const { previews } = body as unknown as Shown;
    expect(previews[0]).toEqual(sent.previews[0]);
    expect(previews[2]).toEqual(sent.previews[2]);
  });

  test("of a closed event shows the clear", async () => {
    const { body } = await call("POST", preview, { event: { ...event, status: "STATUS_CLOSED" } });
    const [, hook] = (body as unknown as Shown).previews;
    expect(JSON.parse(hook?.body ?? "").clear).toBe(true);
  });

  test("sends and stores nothing", async () => {
    await call("POST", preview, { event: { ...event, name: "never stored" } });
    const { body } = await call("POST", "/events:search", { query: {} });
    expect(JSON.stringify(body)).not.toContain("never stored");
  });

  test("of a rule without triggers and destinations is empty", async () => {
    await made(`${notification}/rules`, { name: "bare", message: "x" });
    expect(await call("POST", `${notification}/rules/bare:preview`, { event })).toMatchObject({
      status: 200,
      body: { previews: [] },
    });
  });

  test.each(["read_only_user", "user", "manager"] as const)("is for a %s", async (role) => {
    const headers = await keyHeaders(server.database.sql, tenant.id, "USER", role);
    expect((await call("POST", preview, { event }, headers)).status).toBe(200);
  });
});

describe("whether it matches", () => {
  const both = {
    and: {
      clauses: [
        { contains: { field: "name", value: "disk" } },
        { equals: { field: "entity.name", value: { stringVal: "web one" } } },
      ],
    },
  };
  const named = { timestamp: String(Date.now()), dimensions: { host: "web-9" }, metadataFields: { name: "web one" } };
  const nine = { ...event, dimensions: named.dimensions };
  interface Answer extends Shown {
    matches: boolean;
    steps: { step: string; result: string; reason: string; path: string }[];
  }
  const shown = async (rule: string, what: object) =>
    (await call("POST", `${notification}/rules/${rule}:preview`, what)).body as unknown as Answer;

  beforeAll(async () => {
    await made(`${notification}/triggers`, { name: "web one", type: { event: { query: { clause: both } } } });
    await made(`${notification}/triggers`, {
      name: "points",
      type: { metricThreshold: { metricName: "disk", max: 1 } },
    });
    const rule = { message: "{{{entity.name}}}", destinationNames: ["hook"], enabled: true };
    await made(`${notification}/rules`, { ...rule, name: "named", triggerNames: ["points", "web one"] });
  });

  test("is said with the part of each trigger's clause that is false", async () => {
    const answer = await shown("named", { event: nine });
    expect(answer.matches).toBe(false);
    expect(answer.steps).toMatchObject([
      { step: "rule", result: "passed" },
      { step: "trigger", result: "stopped", reason: 'trigger "points" looks at something else' },
      {
        step: "trigger",
        result: "stopped",
        reason: 'trigger "web one" does not match',
        path: "type.event.query.clause.and.clauses[1].equals",
      },
    ]);
    expect(JSON.parse(answer.previews[0]?.body ?? "").message).toBe("host=web-9");
  });

  test("is asked of the stored entity, whose name is shown, for sent and stored events alike", async () => {
    await made("/data-receiver/models", { models: [named] });
    await made("/data-receiver/events", { events: [nine] });
    const id = idText(eventIds(tenant.id, nine.dimensions, nine.name).eventId);
    for (const what of [{ event: nine }, { eventId: id }]) {
      const { matches, steps, previews } = await shown("named", what);
      expect(matches).toBe(true);
      expect(steps.map(({ result }) => result)).toEqual(["passed", "stopped", "passed"]);
      expect(JSON.parse(previews[0]?.body ?? "")).toMatchObject({
        message: "web one",
        entity: { name: "web one" },
        trigger: { definition: { event: { query: { clause: both } } } },
      });
    }
  });

  test("is no for what is closed, and the rule says when it is disabled", async () => {
    const { matches, steps } = await shown("page", { event: { ...event, status: "STATUS_CLOSED" } });
    expect(matches).toBe(false);
    expect(steps.map(({ reason }) => reason)).toEqual([
      "the rule is disabled",
      'trigger "disks" does not name status, and the occurrence is closed',
    ]);
  });
});

describe("refused", () => {
  test.each([
    ["an unknown rule", `${notification}/rules/none:preview`, { event }, 404],
    ["an unknown event", preview, { eventId: "YWJjZGVmZ2hpamtsbW5vcHFyc3Q=" }, 404],
    ["an id of another form", preview, { eventId: "x" }, 404],
    ["neither event nor id", preview, {}, 400],
    ["an event that agents could not send", preview, { event: { ...event, dimensions: {} } }, 400],
  ])("%s", async (_name, path, body, status) => {
    expect((await call("POST", path, body)).status).toBe(status);
  });

  test("an event of another tenant", async () => {
    const found = await call("POST", "/events:search", { query: {} });
    const [{ id }] = (found.body as unknown as { results: [{ id: string }] }).results;
    const other = await testTenant(server.database.sql);
    const rule = await call("POST", `${notification}/rules`, { name: "page", message: "x" }, other.headers);
    expect(rule.status).toBe(200);
    expect((await call("POST", preview, { eventId: id }, other.headers)).status).toBe(404);
  });

  test("a data client", async () => {
    const headers = await keyHeaders(server.database.sql, tenant.id, "DATA_INGEST", null);
    expect((await call("POST", preview, { event }, headers)).status).toBe(403);
  });
});
