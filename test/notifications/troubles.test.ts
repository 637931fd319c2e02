import { describe, expect, test } from "vitest";
import { consumed } from "../support/consumed.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

// Neither a mail relay nor an address that is not public.
const server = await testServer({});
const tenant = await testTenant(server.database.sql);
const call = v1(server.url, tenant.headers);
const windows = "/v1/modelcontext/maintwindows";

const made = async (path: string, body: object) => {
  const answer = await call("POST", path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};

const excluded = (matcher: string) => `severity="critical" and ${matcher} exclude each other: nothing matches`;

describe("what can never work says why, at once and later", () => {
  test.each([
    ["a rule without a trigger", { destinationNames: ["away"] }, "it has no trigger: nothing matches"],
    ["a rule without a destination", { triggerNames: ["fine"] }, "it has no destination: nobody is notified"],
    ["a rule with neither", {}, "it has no trigger and no destination"],
    ["a rule with both", { triggerNames: ["fine"], destinationNames: ["away"] }, ""],
  ])("%s", async (name, members, trouble) => {
    if (name.endsWith("trigger")) {
      const event = { query: { clause: { equals: { field: "name", value: { stringVal: "x" } } } } };
      await made("/v1/notification/triggers", { name: "fine", type: { event } });
      await made("/v1/notification/destinations", { name: "away", type: { webhook: { url: "https://example.com/" } } });
    }
    const more = { enabled: true, muteDuringMaintenance: true };
    const { rule } = await made("/v1/notification/rules", { name, ...more, ...members });
    expect(rule.trouble).toBe(trouble);
    const { body } = await call("GET", `/v1/notification/rules/${encodeURIComponent(name)}`);
    expect(body.rule.trouble).toBe(trouble);
    // Nothing of it is written, and it is not a change.
    const back = await call("PUT", `/v1/notification/rules/${encodeURIComponent(name)}`, body.rule);
    expect(back.body.rule).toMatchObject({ trouble, etag: rule.etag });
  });

  const unsent =
    "sendUpdates is false: its paging, ticket and chat destinations are not sent that something is resolved";
  const unrepeated = "repeatInterval has no effect without repeat: nothing is repeated";
  const chat = { webhookUrl: "https://example.com/", text: "x" };
  test.each([
    ["a pager", { incidentPaging: { integrationKey: "0123456789abcdef0123456789abcdef" } }, {}, unsent],
    ["tickets", { itsm: { baseUrl: "https://example.com", basic: { username: "u", password: "p" } } }, {}, unsent],
    ["a team's chat", { teamChat: { channel: "c", token: "xoxb-1" } }, {}, unsent],
    ["an office's chat", { officeChat: chat }, { sendUpdates: false }, unsent],
    ["an office's chat and updates", { officeChat: chat }, { sendUpdates: true }, ""],
    ["a webhook", { webhook: { url: "https://example.com/" } }, {}, ""],
    ["an interval alone", { webhook: { url: "https://example.com/" } }, { repeatInterval: 600 }, unrepeated],
    ["the usual interval", { webhook: { url: "https://example.com/" } }, { repeatInterval: 3600 }, ""],
    ["both", { officeChat: chat }, { repeatInterval: 600 }, `${unsent}; ${unrepeated}`],
  ])("a rule that sends to %s", async (kind, type, settings, trouble) => {
    const name = `sends to ${kind}`;
    await made("/v1/notification/destinations", { name, type });
    const more = { enabled: true, muteDuringMaintenance: true, triggerNames: ["fine"], destinationNames: [name] };
    expect((await made("/v1/notification/rules", { name, ...more, ...settings })).rule.trouble).toBe(trouble);
    const { body } = await call("GET", `/v1/notification/rules?name=${encodeURIComponent(name)}`);
    expect(body.rules[0].trouble).toBe(trouble);
  });

  test("a rule that repeats by reports, while all that it matches came as alerts", async () => {
    const rule = { enabled: true, muteDuringMaintenance: true, destinationNames: ["away"], matchers: ["tier=db"] };
    const troubles = async () => {
      const { rules } = (await call("GET", "/v1/notification/rules?name=repeats")).body;
      return Object.fromEntries(rules.map((each: Record<string, string>) => [each.name, each.trouble]));
    };
    await made("/v1/notification/rules", { ...rule, name: "repeats by reports", repeat: true });
    const byClock = { repeat: true, repeatWhile: "REPEAT_WHILE_OPEN" };
    await made("/v1/notification/rules", { ...rule, name: "repeats by the clock", ...byClock });
    expect(await troubles()).toEqual({ "repeats by reports": "", "repeats by the clock": "" });
    const alert = { labels: { alertname: "Down", tier: "db" } };
    const answer = await call("POST", "/api/v2/alerts", [alert]);
    expect(answer.status).toBe(200);
    await consumed(server.database.sql, tenant.id);
    const trouble =
      "repeat without repeatWhile follows reports, and an alert that is sent again is none: give repeatWhile";
    expect(await troubles()).toEqual({ "repeats by reports": trouble, "repeats by the clock": "" });
    const event = { name: "Slow", timestamp: Date.now(), dimensions: { tier: "db" }, severity: "SEVERITY_ERROR" };
    await made("/v1/data-receiver/events", { events: [{ ...event, status: "STATUS_OPEN" }] });
    await consumed(server.database.sql, tenant.id);
    expect(await troubles()).toEqual({ "repeats by reports": "", "repeats by the clock": "" });
  });

  test("a new rule without enabled is off, which its creation says alone", async () => {
    const rule = { name: "off", triggerNames: ["fine"], destinationNames: ["away"] };
    const created = (await made("/v1/notification/rules", rule)).rule;
    expect(created).toMatchObject({ enabled: false, trouble: "it is off: enabled was left out, or false" });
    expect((await call("GET", "/v1/notification/rules/off")).body.rule.trouble).toBe("");
    const bare = (await made("/v1/notification/rules", { name: "bare" })).rule;
    expect(bare.trouble).toBe("it is off: enabled was left out, or false; it has no trigger and no destination");
  });

  test.each([
    ["leaves out enabled", { description: "x" }, "it is off: enabled was left out, or false"],
    ["says false", { description: "y", enabled: false }, ""],
    ["says true", { enabled: true }, ""],
    ["leaves it out when it is on", { description: "z" }, ""],
  ])("a change of a rule that %s", async (_, change, trouble) => {
    const rule = { name: "changed", matchers: ["a=b"], destinationNames: ["away"], muteDuringMaintenance: true };
    await call("POST", "/v1/notification/rules", rule);
    expect((await call("PUT", "/v1/notification/rules/changed", change)).body.rule.trouble).toBe(trouble);
  });

  const wrongKey =
    "incidentPaging.integrationKey: PagerDuty takes no such key: an integration key has 32 letters and digits";
  const wrongToken = "teamChat.token: Slack takes no such token: a bot's begins with xoxb-";
  const body = "takes its own form of body alone: use format WEBHOOK_FORMAT_TEMPLATE with the body in";
  const plainWebhook = {
    slack: `webhook.url: Slack ${body.replace("use", "use the kind teamChat, or")} docs/webhook-bodies.md#slack`,
    teams: "webhook.url: Teams takes its own form of body alone: use the kind officeChat",
    discord: `webhook.url: Discord ${body} docs/webhook-bodies.md#discord`,
    google: `webhook.url: Google Chat ${body} docs/webhook-bodies.md#google-chat`,
    telegram: `webhook.url: Telegram ${body} docs/webhook-bodies.md#telegram`,
  };
  const refused = "the address is not public (BELFRY_OUTBOUND_ALLOW names exceptions)";
  test.each([
    ["loopback", { webhook: { url: "http://127.0.0.1:9944/" } }, `webhook.url: ${refused}`],
    ["this machine by its name", { webhook: { url: "http://localhost/" } }, `webhook.url: ${refused}`],
    ["a private range", { webhook: { url: "https://10.1.2.3/{{event.name}}" } }, `webhook.url: ${refused}`],
    ["loopback in IPv6", { webhook: { url: "https://[::1]/" } }, `webhook.url: ${refused}`],
    [
      "an instance in a private range",
      { itsm: { baseUrl: "https://192.168.1.1", basic: { username: "u", password: "p" } } },
      `itsm.baseUrl: ${refused}`,
    ],
    ["a mail without a relay", { email: { to: "ada@example.com" } }, "no mail relay is set (BELFRY_SMTP_URL)"],
    ["a public address", { webhook: { url: "https://1.1.1.1/" } }, ""],
    ["a host that tags name", { webhook: { url: "https://{{event.name}}/" } }, ""],
    ["Slack as a webhook", { webhook: { url: "https://hooks.slack.com/services/T0/B0/x" } }, plainWebhook.slack],
    [
      "Teams as a webhook",
      { webhook: { url: "https://acme.webhook.office.com/webhookb2/x", format: "WEBHOOK_FORMAT_ALERTMANAGER" } },
      plainWebhook.teams,
    ],
    [
      "Teams' workflows as a webhook",
      { webhook: { url: "https://prod-1.westeurope.logic.azure.com:443/workflows/x" } },
      plainWebhook.teams,
    ],
    ["Teams' flows as a webhook", { webhook: { url: "https://a.api.powerplatform.com/x" } }, plainWebhook.teams],
    ["Discord by its old name", { webhook: { url: "https://discordapp.com/api/webhooks/1/x" } }, plainWebhook.discord],
    ["Discord as a webhook", { webhook: { url: "https://discord.com/api/webhooks/1/x" } }, plainWebhook.discord],
    ["Google Chat as a webhook", { webhook: { url: "https://chat.googleapis.com/v1/spaces/x" } }, plainWebhook.google],
    ["Telegram as a webhook", { webhook: { url: "https://api.telegram.org/bot1/sendMessage" } }, plainWebhook.telegram],
    [
      "Discord with a body of its own",
      {
        webhook: {
          url: "https://discord.com/api/webhooks/1/x",
          format: "WEBHOOK_FORMAT_TEMPLATE",
          body: '{"content":"{{rule.name}}"}',
        },
      },
      "",
    ],
    ["an integration key of 31 letters", { incidentPaging: { integrationKey: "a".repeat(31) } }, wrongKey],
    ["an integration key with a sign", { incidentPaging: { integrationKey: `${"a".repeat(31)}-` } }, wrongKey],
    ["an integration key", { incidentPaging: { integrationKey: "a".repeat(32) } }, ""],
    ["an app's token for a bot's", { teamChat: { channel: "c", token: "xapp-1-A0-1" } }, wrongToken],
    ["a bot's token", { teamChat: { channel: "c", token: "xoxb-1-2-x" } }, ""],
    ["a bot's token that rotates", { teamChat: { channel: "c", token: "xoxe.xoxb-1-x" } }, ""],
    ["a host that only ends like Discord's", { webhook: { url: "https://notdiscord.com/" } }, ""],
  ])("a destination: %s", async (name, type, trouble) => {
    const { destination } = await made("/v1/notification/destinations", { name, type });
    expect(destination.trouble).toBe(trouble);
    const { body } = await call("GET", `/v1/notification/destinations?name=${encodeURIComponent(name)}`);
    expect(body.destinations[0].trouble).toBe(trouble);
  });

  test.each([
    ["a pager's", "incidentPaging", { routingKey: "a".repeat(31) }, { incidentPaging: {} }, wrongKey],
    ["a pager's of the right form", "incidentPaging", { routingKey: "a".repeat(32) }, { incidentPaging: {} }, ""],
    ["an app's token", "teamChat", { token: "xapp-1" }, { teamChat: { channel: "c" } }, wrongToken],
    ["a bot's token", "teamChat", { token: "xoxb-1" }, { teamChat: { channel: "c" } }, ""],
    ["a password", "usernamePassword", { username: "u", password: "p" }, undefined, ""],
  ])("a stored credential, and a destination that uses it: %s", async (name, type, secrets, members, trouble) => {
    const rule = trouble.slice(trouble.indexOf(": ") + 2);
    const path = "/v1/credentials";
    const { id, info } = (await made(path, { info: { name, type }, secrets })).info;
    expect(info.trouble).toBe(rule);
    const { credentials } = (await call("GET", path)).body;
    expect(credentials.find((each: { id: string }) => each.id === id).info.trouble).toBe(rule);
    const kept = await call("PUT", `${path}/${id}`, { info });
    expect(kept).toMatchObject({ status: 200, body: { info: { info: { trouble: rule } } } });
    if (members === undefined) return;
    const [[kind, more]] = Object.entries(members) as [[string, object]];
    const uses = { name: `uses ${name}`, type: { [kind]: { ...more, credentialId: id } } };
    const said = rule && `${kind}.credentialId: ${rule}`;
    expect((await made("/v1/notification/destinations", uses)).destination.trouble).toBe(said);
  });

  test.each([
    ["severty", "severity"],
    ["Severity", "severity"],
    ["sumary", "summary"],
    ["statsu", "status"],
    ["mount", ""],
    ["host", ""],
    ["entity.nam", ""],
    ["metadataFields.severty", ""],
  ])("a trigger, or a search, that looks at %s", async (field, meant) => {
    const equals = { field, value: { stringVal: "x" } };
    const type = { event: { query: { clause: { or: { clauses: [{ equals }] } } } } };
    const { trigger } = await made("/v1/notification/triggers", { name: `looks at ${field}`, type });
    const doubt = `it looks at "${field}", which only a dimension or metadata can be; did you mean "${meant}"?`;
    expect(trigger.trouble).toBe(meant === "" ? "" : doubt);
    const filter = { field, operation: "OP_EQUALS", value: "x" };
    const found = await made("/v1/events:search", { query: { clause: { or: { clauses: [{ filter }] } } } });
    expect(found).toMatchObject({ results: [], hint: trigger.trouble });
  });

  test.each([
    ["priorty", "priority"],
    ["Name", "name"],
    ["source", ""],
    ["nam", ""],
    ["dimensions.priorty", ""],
  ])("a search of entities that looks at %s", async (field, meant) => {
    const clause = { not: { clause: { filter: { field, operation: "OP_EQUALS", value: "x" } } } };
    const { hint } = await made("/v1/modelcontext/entities:search", { search_input: { query: { clause } } });
    const doubt = `it looks at "${field}", which only a dimension or metadata can be; did you mean "${meant}"?`;
    expect(hint).toBe(meant === "" ? "" : doubt);
  });

  const matcherTroubles: [matchers: string[], trouble: string][] = [
    [
      ["severity=critical", "severity=warning"],
      'severity="critical" and severity="warning" exclude each other: nothing matches',
    ],
    [["severity=critical", "job=x", "severity!=critical"], excluded('severity!="critical"')],
    [["severity=critical", 'severity=~"page|ticket"'], excluded('severity=~"page|ticket"')],
    [["severity=critical", 'severity!~"crit.*"'], excluded('severity!~"crit.*"')],
    [["severity=", "severity=~.+"], 'severity="" and severity=~".+" exclude each other: nothing matches'],
    [["severity=critical", "severity=critical", "severity=~crit.*", "severity!=warning", "job=warning"], ""],
    [["alertname==Down"], 'alertname="=Down": its value begins with "="; did you mean alertname="Down"?'],
    [["job=x", "alertname!==Down"], ""],
    [
      ["alertname==Down", "severity=critical", "severity!=critical"],
      `${excluded('severity!="critical"')}; alertname="=Down": its value begins with "="; did you mean alertname="Down"?`,
    ],
  ];
  test.each(matcherTroubles)("matchers %j of a rule, a trigger and a silence", async (matchers, trouble) => {
    const name = matchers.join(" ");
    const rule = { name, matchers, enabled: true, muteDuringMaintenance: true, destinationNames: ["away"] };
    expect((await made("/v1/notification/rules", rule)).rule.trouble).toBe(trouble);
    const type = { event: { query: { matchers } } };
    expect((await made("/v1/notification/triggers", { name, type })).trigger.trouble).toBe(trouble);
    const silence = { matchers, endsAt: Date.now() + 3_600_000, comment: "x" };
    expect((await made("/v1/notification/silences", silence)).trouble).toBe(trouble);
  });

  const critical = { matchers: { matchers: ["severity=critical"] } };
  const not = { matchers: { matchers: ["severity!=critical"] } };
  const other = { matchers: { matchers: ["severity=warning", "job=x"] } };
  const both = 'severity="critical" and severity="warning" exclude each other';
  test.each<[string, object, string]>([
    ["one list", { matchers: { matchers: ["severity=critical", "severity=warning"] } }, `${both}: nothing matches`],
    ["two of an and", { and: { clauses: [critical, { and: { clauses: [other] } }] } }, `${both}: nothing matches`],
    ["two of an or", { or: { clauses: [critical, other] } }, ""],
    [
      "two of an and within an or",
      { or: { clauses: [other, { and: { clauses: [critical, not] } }] } },
      'severity="critical" and severity!="critical" exclude each other: that part of the clause matches nothing',
    ],
    ["one of them negated", { and: { clauses: [critical, { not: { clause: other } }] } }, ""],
    [
      "two that are negated together",
      { not: { clause: { and: { clauses: [critical, other] } } } },
      `${both}: that part of the clause matches nothing`,
    ],
  ])("matchers within a trigger's clause: %s", async (name, clause, trouble) => {
    const { trigger } = await made("/v1/notification/triggers", { name, type: { event: { query: { clause } } } });
    expect(trigger.trouble).toBe(trouble);
  });

  test.each(["constructor", "__proto__"])("a trigger named %s has no trouble of another's", async (name) => {
    const type = { event: { query: { matchers: ["a=b"] } } };
    expect((await made("/v1/notification/triggers", { name, type })).trigger.trouble).toBe("");
    const { body } = await call("GET", `/v1/notification/triggers/${name}`);
    expect(body.trigger).toMatchObject({ name, trouble: "" });
  });

  test("a trigger of matchers alone has none", async () => {
    const type = { event: { query: { matchers: ["severity=critical"] } } };
    const { trigger } = await made("/v1/notification/triggers", { name: "matchers alone", type });
    expect(trigger.trouble).toBe("");
  });

  test("a window that covers nothing now, while it has a run to come", async () => {
    await made("/v1/data-receiver/models", { models: [{ timestamp: Date.now(), dimensions: { source: "web-1" } }] });
    const filter = (value: string) => ({ clause: { filter: { field: "source", operation: "OP_EQUALS", value } } });
    const later = { start: Date.now() + 3_600_000, duration: 3_600_000 };
    const specification = { maintenanceState: 300, schedule: later };
    await made(windows, { specification: { ...specification, name: "web", query: filter("web-1") } });
    await made(windows, { specification: { ...specification, name: "none", query: filter("web-9") } });
    await made(windows, { specification: { ...specification, name: "off", status: 1, query: filter("web-9") } });
    const { maintWindows } = (await call("POST", `${windows}:list`, {})).body;
    const troubles = Object.fromEntries(maintWindows.map((each: Record<string, string>) => [each.name, each.trouble]));
    const trouble = "no entity is as its query says now: a run would change nothing";
    expect(troubles).toEqual({ web: "", none: trouble, off: "" });
  });

  test("the preview of a window names the enabled rules that will not be silent", async () => {
    await made("/v1/notification/rules", { name: "loud", enabled: true });
    await made("/v1/notification/rules", { name: "muted", enabled: true, muteDuringMaintenance: true });
    const schedule = { start: Date.now(), duration: 3_600_000 };
    const query = { clause: { filter: { field: "name", operation: "OP_EQUALS", value: "web-1" } } };
    const specification = { name: "w", maintenanceState: 300, schedule, query };
    const { body } = await call("POST", `${windows}:preview`, { specification });
    expect(body).toMatchObject({ unmutedRules: ["loud"], moreUnmutedRules: false });
  });
});
