import { describe, expect, test } from "vitest";
import { dedupKeyOf, severityOf } from "../../src/integrations/alertmanager/event-of-alert.ts";
import { parseTime } from "../../src/integrations/alertmanager/times.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";

// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape, which the test itself looks into
type Json = any;

const server = await testServer();

/** A tenant of its own: calls as Prometheus does, searches as a user does. */
async function world() {
  const tenant = await testTenant(server.database.sql);
  const json = v1(server.url, tenant.headers);
  const call = tool(server, tenant.headers);
  return {
    call,
    post: (alerts: unknown) => call("POST", "/api/v2/alerts", alerts),
    list: async (query = "") => (await call("GET", `/api/v2/alerts${query}`)).body,
    async events() {
      const { body } = await json("POST", "/v1/events:search", { query: { pageInput: { limit: 100 } } });
      return body.results;
    },
    json,
  };
}

const at = (offsetMs: number) => new Date(Date.now() + offsetMs).toISOString();
const alert = (labels: Record<string, string>, more: object = {}) => ({
  labels: { alertname: "DiskFull", job: "node", instance: "web-1:9100", ...labels },
  annotations: { summary: "97 % is used", description: "Of /var\n97 % is used" },
  startsAt: at(-60_000),
  endsAt: at(240_000),
  generatorURL: "http://prometheus:9090/graph?g0.expr=disk",
  ...more,
});

describe("an alert", () => {
  test("becomes an event of its labels, which the next one of them keeps open, and its end closes", async () => {
    const { post, events } = await world();
    const firing = alert({ mountpoint: "/var", severity: "page" });
    expect(await post([firing])).toMatchObject({ status: 200, body: "" });
    const [first] = await events();
    expect(first).toMatchObject({
      name: "DiskFull",
      dedupKey: dedupKeyOf(Object.entries(firing.labels)),
      occurrences: [
        {
          severity: "SEVERITY_CRITICAL",
          status: "STATUS_OPEN",
          type: "alert",
          summary: "97 % is used",
          body: "Of /var\n97 % is used",
          instanceCount: "1",
          startTime: String(Date.parse(firing.startsAt)),
          expiresAt: String(Date.parse(firing.endsAt)),
          dimensions: { job: "node", instance: "web-1:9100" },
          metadataFields: {
            alertname: "DiskFull",
            mountpoint: "/var",
            severity: "page",
            generatorURL: firing.generatorURL,
            "annotation.summary": "97 % is used",
          },
        },
      ],
    });
    // The other one of a pair: another start, and a later end.
    const again = { ...firing, startsAt: at(-30_000), endsAt: at(300_000) };
    await post([again, firing]);
    const [second] = await events();
    expect(second.occurrences).toMatchObject([{ instanceCount: "1", expiresAt: String(Date.parse(again.endsAt)) }]);
    expect(second.occurrences[0].lastSeen).toBe(first.occurrences[0].lastSeen);
    const endsAt = at(-1000);
    for (let i = 0; i < 2; i++) await post([{ ...firing, endsAt }]);
    const [third] = await events();
    expect(third.occurrences).toMatchObject([{ status: "STATUS_CLOSED", endTime: String(Date.parse(endsAt)) }]);
    await post([{ ...firing, startsAt: at(-500) }]);
    expect((await events())[0].occurrences).toHaveLength(2);
  });

  test("differs by any label, and an empty one is none", async () => {
    const { post, list } = await world();
    await post([alert({ mountpoint: "/" }), alert({ mountpoint: "/var" }), alert({ mountpoint: "/var", empty: "" })]);
    expect(await list()).toHaveLength(2);
    expect(dedupKeyOf([["mount", "point/var"]])).not.toBe(dedupKeyOf([["mountpoint", "/var"]]));
  });

  test("without times is believed for five minutes, and the zero time is none", async () => {
    const { post, list } = await world();
    const before = Date.now();
    await post([
      { labels: { alertname: "A" } },
      { labels: { alertname: "B" }, startsAt: "0001-01-01T00:00:00Z", endsAt: null },
    ]);
    for (const { startsAt, endsAt } of await list()) {
      expect(Date.parse(startsAt)).toBeGreaterThan(before - 2000);
      expect(Date.parse(endsAt) - Date.parse(startsAt)).toBe(300_000);
    }
  });

  test("that is older than events are kept, or ahead of the clock, is moved to where it is taken", async () => {
    const { post, list } = await world();
    expect(
      (
        await post([
          alert({}, { startsAt: "2001-01-01T00:00:00Z" }),
          alert({ a: "b" }, { startsAt: at(86_400_000), endsAt: at(90_000_000) }),
        ])
      ).status,
    ).toBe(200);
    expect(await list()).toHaveLength(2);
  });
});

describe("what is not taken", () => {
  test("is reported, and what is good of the same request is stored", async () => {
    const { post, list } = await world();
    const answer = await post([
      alert({ n: "good" }),
      alert({}, { startsAt: at(0), endsAt: at(-60_000) }),
      { labels: { a: "" } },
      alert({ "": "x" }),
      alert({}, { annotations: { "": "x" } }),
    ]);
    expect([answer.status, answer.body]).toEqual([
      400,
      'start time must be before end time; at least one label pair required; invalid label set: invalid name ""; invalid annotations: invalid name ""',
    ]);
    expect(await list()).toHaveLength(1);
    expect(await post([alert({ n: "other" }), { annotations: {} }])).toMatchObject({
      status: 422,
      body: { code: 602, message: "alerts.1.labels in body is required" },
    });
    expect(await list()).toHaveLength(2);
  });

  test.each([
    ["{", 400],
    ["{}", 400],
    ['"text"', 400],
    ['[{"labels":{"a":1}}]', 400],
    ['[{"labels":{"a":"b"},"startsAt":"yesterday"}]', 400],
    ["[{}]", 422],
    ["", 422],
  ])("%s is %i, as an object", async (body, status) => {
    const { call } = await world();
    expect(await call("POST", "/api/v2/alerts", body)).toMatchObject({ status, body: { message: expect.any(String) } });
  });

  test("another type is 415, and null and an empty list are fine", async () => {
    const { call, post } = await world();
    expect(await call("POST", "/api/v2/alerts", "[]", { "content-type": "text/plain" })).toMatchObject({
      status: 415,
      body: { code: 415 },
    });
    expect(await post(null)).toMatchObject({ status: 200 });
    expect(await post([])).toMatchObject({ status: 200 });
  });
});

describe("a generatorURL may be any text", () => {
  const texts = [
    "http://:9090/graph?g0.expr=up",
    "http://monitoring_prometheus.1:9090/x",
    "http://417283950617:9090/x",
    "http://[fe80::1%25eth0]:9090/x",
    "javascript:alert(1)",
    "no uri",
  ];

  test.each(texts)("%s, in a list and in a webhook", async (generatorURL) => {
    const { call, post, list } = await world();
    expect(await post([alert({ n: "1" }, { generatorURL })])).toMatchObject({ status: 200, body: "" });
    const webhook = { version: "4", alerts: [{ status: "firing", ...alert({ n: "2" }, { generatorURL }) }] };
    expect((await call("POST", "/v1/integrations/alertmanager-webhook", webhook)).status).toBe(200);
    expect((await list()).map((each: { generatorURL: string }) => each.generatorURL)).toEqual([
      generatorURL,
      generatorURL,
    ]);
  });
});

describe("hostile alerts", () => {
  test("are stored: long labels, control characters, names that mean something here", async () => {
    const { post, list, events, json } = await world();
    const long = "é".repeat(5 * 1024);
    const labels = {
      alertname: `Odd\u0000\n${"x".repeat(300)}`,
      instance: "i".repeat(3000),
      long,
      "with.dots and blanks": "1",
      日本: "東京",
      _svc_deleted_entity: "true",
      name: "n",
      "label.name": "m",
      "annotation.summary": "s",
      generatorURL: "g",
      priority: "9",
      ["__proto__"]: "p",
      lines: "one\r\n\ttwo\u0007",
    };
    const annotations = { summary: "s".repeat(500), description: "d".repeat(100_000), priority: "no" };
    expect((await post([alert(JSON.parse(JSON.stringify(labels)), { annotations })])).status).toBe(200);
    const [{ labels: shown }] = await list();
    const { alertname, ...same } = labels;
    const listed = { ...same, alertname: alertname.replace("\0", " "), job: "node" };
    expect(Object.entries(shown).sort()).toEqual(Object.entries(listed).sort());
    const [
      {
        name,
        occurrences: [occurrence],
      },
    ] = await events();
    expect([name.length, name.slice(0, 6), occurrence.summary.length, occurrence.dimensions.instance.length]).toEqual([
      255,
      "Odd  x",
      128,
      1024,
    ]);
    expect(Buffer.byteLength(occurrence.body)).toBe(65_536);
    expect(occurrence.metadataFields["label._svc_deleted_entity"]).toBe("true");
    const { body } = await json("POST", "/v1/modelcontext/entities:search", {
      search_input: {
        query: { clause: { filter: { field: "dimensions.job", operation: "OP_EQUALS", value: "node" } } },
      },
    });
    expect(body.entities.entities).toHaveLength(1);
  });

  test("whose labels hold NUL, or are very long, are grouped and compared like others", async () => {
    const { post, list, json } = await world();
    const long = "ab".repeat(450_000);
    expect((await post([alert({ "odd\0name": "odd\0value" }), alert({ long }), alert({})])).status).toBe(200);
    const { status, body } = await json("POST", "/v1/events:group", { labels: ["odd name"] });
    expect(status).toBe(200);
    expect(body.groups.map(({ labels, count }: { labels: object; count: string }) => [labels, count])).toEqual([
      [{}, "2"],
      [{ "odd name": "odd value" }, "1"],
    ]);
    const [cut] = (await list()).flatMap(({ labels }: { labels: { long?: string } }) => labels.long ?? []);
    expect(cut).toBe(`${long.slice(0, 32_765)}…`);
  });

  test("ten labels of 10 KiB and nearly two thousand labels are listed as they were sent", async () => {
    const { post, list } = await world();
    const ten = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`l${i}`, String(i).repeat(10_240)]));
    const many = Object.fromEntries(Array.from({ length: 1990 }, (_, i) => [`label_${i}`, "v".repeat(100)]));
    expect((await post([alert(ten), alert(many)])).status).toBe(200);
    const listed = (await list()).map(({ labels }: { labels: object }) => labels);
    expect(listed).toEqual(expect.arrayContaining([alert(ten).labels, alert(many).labels]));
  });

  test("annotations that grow while the alert fires cut no label", async () => {
    const { post, list } = await world();
    const labels = { query: "q".repeat(8 * 1024) };
    await post([alert(labels)]);
    const annotations = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`a${i}`, "a".repeat(2048)]));
    await post([alert(labels, { annotations })]);
    const [listed] = await list();
    expect(listed.labels).toEqual(alert(labels).labels);
    expect(listed.annotations.a49).toMatch(/^a+…$/);
  });

  test("10,000 at once are stored, and listed", async () => {
    const { post, call } = await world();
    const alerts = Array.from({ length: 10_000 }, (_, i) => alert({ n: String(i) }));
    expect((await post(alerts)).status).toBe(200);
    const { body } = await call("GET", "/api/v2/alerts");
    expect(new Set(body.map(({ fingerprint }: { fingerprint: string }) => fingerprint)).size).toBe(10_000);
  }, 60_000);
});

describe("reading", async () => {
  const { post, call, list, json } = await world();
  await post([alert({ severity: "critical", n: "1" }), alert({ severity: "warning", n: "2", quote: 'a"b' })]);
  await json("POST", "/v1/data-receiver/events", {
    events: [
      {
        name: "other",
        timestamp: String(Date.now()),
        dimensions: { source: "x" },
        status: "STATUS_OPEN",
        type: "alert",
      },
    ],
  });

  test("lists every open occurrence, in Alertmanager's form", async () => {
    const [first] = await list("?filter=n%3D1");
    expect(first).toEqual({
      annotations: expect.any(Object),
      endsAt: expect.stringMatching(/\.\d{3}Z$/),
      fingerprint: expect.stringMatching(/^[\da-f]{16}$/),
      receivers: [{ name: "belfry" }],
      startsAt: expect.any(String),
      updatedAt: expect.any(String),
      status: { inhibitedBy: [], silencedBy: [], state: "active" },
      generatorURL: expect.any(String),
      labels: { alertname: "DiskFull", job: "node", instance: "web-1:9100", severity: "critical", n: "1" },
    });
    const [other, ...none] = await list("?filter=source%3Dx");
    expect(none).toEqual([]);
    expect(other).toMatchObject({
      annotations: {},
      fingerprint: expect.stringMatching(/^[\da-f]{16}$/),
      receivers: [{ name: "belfry" }],
      status: { inhibitedBy: [], silencedBy: [], state: "active" },
      labels: { alertname: expect.any(String), severity: expect.any(String), type: "alert", source: "x" },
    });
    expect(Date.parse(other.endsAt) - Date.now()).toBeGreaterThan(290_000);
    expect(await list()).toHaveLength(3);
  });

  test.each([
    ['severity="critical"', 1],
    ["severity=~crit.*|none", 1],
    ["severity=~crit", 0],
    ["severity!~crit.*", 2],
    ["severity!=critical", 2],
    ['"severity"="critical"', 1],
    ["absent=", 3],
    ['absent!=""', 0],
    ['quote="a\\"b"', 1],
  ])("filter %s finds %i", async (filter, count) => {
    expect(await list(`?filter=${encodeURIComponent(filter)}`)).toHaveLength(count);
  });

  test("several filters must all hold, and so must flags and the receiver", async () => {
    expect(await list("?filter=severity%3Dcritical&filter=n%3D2")).toEqual([]);
    expect(await list("?active=false")).toEqual([]);
    expect(await list("?silenced=false&inhibited=false&unprocessed=false")).toHaveLength(3);
    expect(await list("?receiver=bel.*")).toHaveLength(3);
    expect(await list("?receiver=other")).toEqual([]);
  });

  test.each([
    "?filter=a%3D%22b%22%2Cc%3D%22d%22",
    "?filter=%7Ba%3D%22b%22%7D",
    "?filter=a",
    "?filter=a%3D~(",
    "?active=maybe",
    "?receiver=(",
  ])("%s is 400, as a text", async (query) => {
    expect(await call("GET", `/api/v2/alerts${query}`)).toMatchObject({ status: 400, body: expect.any(String) });
  });

  test("status, groups and receivers are there", async () => {
    expect((await call("GET", "/api/v2/status")).body).toMatchObject({
      cluster: { status: "disabled" },
      versionInfo: { version: expect.stringMatching(/^0\.\d+\.\d+$/) },
      config: { original: "" },
    });
    expect((await call("GET", "/api/v2/alerts/groups")).body).toMatchObject([
      { labels: {}, receiver: { name: "belfry" }, alerts: [{}, {}, {}] },
    ]);
    expect((await call("GET", "/api/v2/alerts/groups?active=false")).body).toEqual([]);
    expect((await call("GET", "/api/v2/receivers")).body).toEqual([{ name: "belfry" }]);
  });
});

describe("a webhook of Alertmanager or Grafana", () => {
  const path = "/v1/integrations/alertmanager-webhook";
  const hook = (alerts: object[], more: object = {}) => ({
    version: "4",
    status: "firing",
    receiver: "belfry",
    groupKey: "{}",
    alerts,
    ...more,
  });

  test("is stored by the status of each alert, once however often it comes, and does not expire", async () => {
    const { call, list, events } = await world();
    const firing = {
      status: "firing",
      ...alert({ n: "1" }, { endsAt: "0001-01-01T00:00:00Z", fingerprint: "x" }),
      values: { A: 1 },
    };
    for (let i = 0; i < 2; i++)
      expect(await call("POST", path, hook([firing], { orgId: 1, truncatedAlerts: 3 }))).toMatchObject({ status: 200 });
    const [{ occurrences }] = await events();
    expect(occurrences).toMatchObject([{ instanceCount: "1", status: "STATUS_OPEN" }]);
    expect(occurrences[0].expiresAt ?? null).toBeNull();
    expect(await list()).toHaveLength(1);
    expect((await call("POST", path, hook([{ ...firing, status: "resolved", endsAt: at(0) }]))).status).toBe(200);
    expect(await list()).toEqual([]);
  });

  test("is refused in our form where it is none, and what is good of it is stored", async () => {
    const { call, list } = await world();
    expect(await call("POST", path, "{")).toMatchObject({
      status: 400,
      body: { code: 3, message: "the body must be JSON" },
    });
    expect(await call("POST", path, {})).toMatchObject({ status: 400, body: { message: "alerts: must be a list" } });
    const half = hook([
      { status: "firing", ...alert({}) },
      { status: "firing", labels: {} },
    ]);
    expect(await call("POST", path, half)).toMatchObject({
      status: 400,
      body: { message: "at least one label pair required" },
    });
    expect(await list()).toHaveLength(1);
  });
});

test.each([
  ["CRITICAL", 5],
  ["page", 5],
  ["high", 4],
  ["medium", 3],
  ["notice", 2],
  ["debug", 1],
  ["none", 0],
  ["None ", 0],
  ["default", 0],
  ["P1", 3],
  ["toString", 3],
  [undefined, 3],
])("a label severity of %s is severity %i", (text, severity) => {
  expect(severityOf(text)).toBe(severity);
});

test.each(["/api/v2/alerts", "/v1/integrations/alertmanager-webhook"])(
  "an alert of severity none at %s is of severity DEFAULT; an occurrence that is open keeps its severity",
  async (path) => {
    const { call, events } = await world();
    const send = async (n: string) => {
      const watchdog = { status: "firing", ...alert({ alertname: "Watchdog", severity: "none", n }) };
      const body = path.startsWith("/api") ? [watchdog] : { version: "4", alerts: [watchdog] };
      expect((await call("POST", path, body)).status).toBe(200);
    };
    const severities = async () =>
      (await events())
        .map(({ occurrences: [{ severity, metadataFields }] }: Json) => `${metadataFields.n} ${severity}`)
        .sort();
    await send("1");
    expect(await severities()).toEqual(["1 SEVERITY_DEFAULT"]);
    // As 0.3.0 stored it.
    await server.database
      .sql`update occurrences set severity = 3 where metadata ->> 'n' = '1' and metadata ->> 'alertname' = 'Watchdog'`;
    await send("1");
    await send("2");
    expect(await severities()).toEqual(["1 SEVERITY_WARNING", "2 SEVERITY_DEFAULT"]);
  },
);

test("times are RFC 3339, with any fraction and offset", () => {
  const noon = Date.UTC(2026, 10, 23, 12);
  expect(parseTime("2026-11-23T12:00:00.123456789Z")).toBe(noon + 123);
  expect(parseTime("2026-11-23T13:00:00+01:00")).toBe(noon);
  expect(parseTime("0001-01-01T00:00:00Z")).toBeUndefined();
  for (const text of ["2026-02-30T00:00:00Z", "soon", "2026-11-23"]) expect(parseTime(text)).toBeNull();
});
