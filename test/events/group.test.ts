import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { GroupEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { connect } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { paced } from "../../src/event-loop.ts";
import { storingChanges } from "../../src/events/changes.ts";
import { groupEvents } from "../../src/events/group.ts";
import { labelOf, labelSql } from "../../src/events/labels.ts";
import { openAlerts } from "../../src/events/open-alerts.ts";
import { lookedUp } from "../../src/events/rows.ts";
import { ingestEvents } from "../entities/stored.ts";
import { tool } from "../integrations/calls.ts";
import { onCitus } from "../support/citus.ts";
import { transport } from "../support/clients.ts";
import { emptyDatabase, poolOptions } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const db = server.database.sql;

type Group = { labels: Record<string, string>; count: string; acknowledgedCount: string; severity: string } & {
  oldestTime: string;
  newestTime: string;
  entity?: string;
  entityName?: string;
  members: { name: string; entityName: string; occurrences: { id: string; severity: string; body: string | null }[] }[];
};

async function place() {
  const tenant = await testTenant(db);
  const call = v1(server.url, tenant.headers);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers));
  const base = Date.now() - 100_000;
  async function ok(path: string, body: object) {
    const answer = await call("POST", path, body);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body as never;
  }
  return {
    tenant,
    call,
    ok,
    base,
    put: (events: object[]) =>
      receiver.putEvents({
        events: events.map((event, i) => ({ timestamp: BigInt(base + i * 1000), status: 1, ...event })) as never,
      }),
    group: (body: object) => ok("/v1/events:group", body) as Promise<{ groups: Group[] } & Record<string, string>>,
  };
}

test("groups have their labels, counts, ages, the worst severity and the first five of their occurrences", async () => {
  const { put, group, base } = await place();
  await put([
    ...Array.from({ length: 6 }, (_, i) => ({ name: "disk", severity: 3, dimensions: { host: `h${i}` }, body: "b" })),
    { name: "disk", severity: 5, dimensions: { host: "h6" }, acknowledged: true },
    { name: "down", severity: 4, dimensions: { host: "h0" } },
    { name: "over", severity: 5, dimensions: { host: "h0" }, status: 3 },
  ]);
  const query = { statuses: ["STATUS_OPEN"] };
  const found = await group({ query, labels: ["alertname"] });
  expect(found).toMatchObject({ totalCount: "2", nextPageToken: "" });
  const [disk, down] = found.groups as [Group, Group];
  expect(disk).toMatchObject({
    labels: { alertname: "disk" },
    count: "7",
    acknowledgedCount: "1",
    severity: "SEVERITY_CRITICAL",
    oldestTime: String(base),
    newestTime: String(base + 6000),
  });
  expect(disk.members.map(({ entityName, occurrences }) => [entityName, occurrences[0]?.severity])).toEqual([
    [expect.any(String), "SEVERITY_CRITICAL"],
    ...Array.from({ length: 4 }, () => [expect.any(String), "SEVERITY_WARNING"]),
  ]);
  expect(disk.members[0]?.occurrences[0]).toMatchObject({ acknowledged: true, startTime: String(base + 6000) });
  expect(disk.members[1]?.occurrences[0]?.body ?? null).toBeNull();
  expect(down).toMatchObject({ labels: { alertname: "down" }, count: "1", members: [{ name: "down" }] });
  const names = async (sort: string) =>
    (await group({ query, labels: ["alertname"], sort })).groups.map(({ labels }) => labels.alertname);
  expect(await names("COUNT")).toEqual(["disk", "down"]);
  expect(await names("SEVERITY")).toEqual(["disk", "down"]);
  expect(await names("NEWEST")).toEqual(["down", "disk"]);
  expect(await names("OLDEST")).toEqual(["disk", "down"]);
  expect((await group({ query })).groups).toMatchObject([{ labels: {}, count: "8" }]);
  const closed = await group({ query: { statuses: ["STATUS_CLOSED"] } });
  expect(closed.groups[0]?.members[0]?.occurrences).toMatchObject([{ endTime: String(base + 8000) }]);
  expect(await group({ query: { statuses: ["STATUS_SUPPRESSED"] } })).toMatchObject({ groups: [], totalCount: "0" });
});

test.skipIf(onCitus)("pages are complete in a database whose own order differs from that of code points", async () => {
  const admin = await emptyDatabase();
  const name = `${new URL(admin.url).pathname.slice(1)}_icu`;
  await admin.query(`create database ${name} template template0 locale_provider icu icu_locale 'en-US'`);
  const url = Object.assign(new URL(admin.url), { pathname: `/${name}` }).href;
  const pool = connect(url, poolOptions());
  onTestFinished(async () => {
    await pool.close();
    await admin.query(`drop database ${name} with (force)`);
  });
  await migrate(url);
  const tenant = await testTenant(pool.sql);
  const names = ["a", "B", "c", "D"];
  const timeMs = BigInt(Date.now());
  const event = { dimensions: { host: "h" }, type: "", summary: "", body: "", severity: 4, status: 1, metadata: {} };
  await ingestEvents(
    pool.ingest,
    tenant.id,
    names.map((each) => ({ ...event, name: each, timeMs, acknowledged: undefined })),
    { nowMs: Number(timeMs), store: storingChanges({}), known: entityCache() },
  );
  const seen: string[] = [];
  let pageToken = "";
  do {
    const request = create(GroupEventsRequestSchema, { labels: ["alertname"], pageSize: 1, pageToken });
    const page = await groupEvents(pool.sql, tenant.id, request, new AbortController().signal);
    seen.push(...page.groups.map(({ labels }) => labels.alertname ?? ""));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(seen).toEqual(["B", "D", "a", "c"]);
});

test("a label that occurrences do not have makes a group without it, an empty text counts as none", async () => {
  const { put, group } = await place();
  await put([
    { name: "a", dimensions: { host: "h" }, metadataFields: { team: "core" } },
    { name: "b", dimensions: { host: "h" }, metadataFields: { team: "" } },
    { name: "c", dimensions: { host: "h" } },
  ]);
  const { groups } = await group({ query: {}, labels: ["team", "host"] });
  expect(groups.map(({ labels, count }) => [labels, count])).toEqual([
    [{ host: "h" }, "2"],
    [{ team: "core", host: "h" }, "1"],
  ]);
});

test("groups by entity tell entities of one name apart, have it, and page; labels divide them further", async () => {
  const { put, group, ok } = await place();
  const twins = ["a", "b"].map((host) => ({
    dimensions: { host },
    timestamp: Date.now(),
    metadataFields: { name: "twin" },
  }));
  await ok("/v1/data-receiver/models", { models: twins });
  await put([
    { name: "disk", severity: 3, dimensions: { host: "a" } },
    { name: "down", severity: 4, dimensions: { host: "a" } },
    { name: "disk", severity: 5, dimensions: { host: "b" } },
    { name: "disk", severity: 1, dimensions: { host: "c" } },
  ]);
  const { groups, totalCount } = await group({ byEntity: true, sort: "SEVERITY" });
  expect(totalCount).toBe("3");
  expect(groups.map(({ entityName, count }) => [entityName, count])).toEqual([
    ["twin", "1"],
    ["twin", "2"],
    [expect.stringContaining("c"), "1"],
  ]);
  const [worst, second] = groups as [Group, Group];
  expect(worst).toMatchObject({ labels: {}, members: [{ entity: worst.entity }] });
  const clause = { filter: { field: "entity", operation: "OP_EQUALS", value: second.entity } };
  const [together] = (await group({ query: { clause } })).groups;
  expect([together?.count, together?.entity ?? null, together?.entityName ?? null]).toEqual(["2", null, null]);
  const divided = await group({ query: { clause }, labels: ["alertname"], byEntity: true, sort: "OLDEST" });
  expect(divided.groups).toMatchObject([
    { labels: { alertname: "disk" }, entity: second.entity },
    { labels: { alertname: "down" }, entity: second.entity },
  ]);
  const seen: unknown[] = [];
  let pageToken = "";
  do {
    const page = await group({ byEntity: true, sort: "SEVERITY", pageSize: 1, pageToken });
    seen.push(...page.groups.map(({ entity }) => entity));
    ({ nextPageToken: pageToken = "" } = page);
  } while (pageToken !== "");
  expect(seen).toEqual(groups.map(({ entity }) => entity));
  expect(await group({ query: { statuses: ["STATUS_CLOSED"] }, byEntity: true })).toMatchObject({ totalCount: "0" });
});

test("labels are fields of clauses, counts and triggers; a key that is called like one stays one", async () => {
  const { put, ok, tenant } = await place();
  await put([
    { name: "a", dimensions: { host: "h1" }, metadataFields: { team: "core", "labels.zone": "z" } },
    { name: "b", dimensions: { host: "h2" }, severity: 5, metadataFields: { team: 7 } },
  ]);
  const names = async (field: string, value: string, operation = "OP_EQUALS") => {
    const query = { clause: { filter: { field, operation, value } } };
    const { results } = (await ok("/v1/events:search", { query })) as { results: { name: string }[] };
    return results.map(({ name }) => name).sort();
  };
  expect(await names("labels.team", "core")).toEqual(["a"]);
  expect(await names("labels.team", "core", "OP_NOT_EQUALS")).toEqual(["b"]);
  expect(await names("labels.team", "7")).toEqual(["b"]);
  expect(await names("labels.severity", "critical")).toEqual(["b"]);
  expect(await names("labels.zone", "z")).toEqual(["a"]);
  const counted = await ok("/v1/events:count", { fields: [{ field: "labels.team" }] });
  expect(counted).toMatchObject({
    results: {
      "labels.team": {
        values: [
          { value: "7", count: "1" },
          { value: "core", count: "1" },
        ],
      },
    },
  });
  const clause = { equals: { field: "labels.team", value: { stringVal: "core" } } };
  const previewed = await ok("/v1/notification/triggers:preview", { type: { event: { query: { clause } } } });
  expect(JSON.stringify(previewed)).toContain('"a"');
  expect(JSON.stringify(previewed)).not.toContain('"b"');
  expect(tenant.id).toBeDefined();
});

test("what a label is in the database is what the label view says, of alerts and of all else", async () => {
  const { put, tenant } = await place();
  const odd = [1e21, 1.5e-7, -2.5e22, 0, -0.5, 0.000001, 123456789.25, 1e20];
  const metadata = Object.fromEntries(odd.map((value, i) => [`n${i}`, value]));
  const sent = { alertname: "m", reason: "r", "label.x": "marked", x: "bare", "annotation.y": "z", generatorURL: "g" };
  await put([
    {
      name: "a",
      type: "t",
      severity: 4,
      dimensions: { host: "h", severity: "own" },
      metadataFields: metadata,
    },
    {
      name: "b",
      dimensions: { host: "h" },
      metadataFields: { ...sent, list: [1], map: { a: 1 }, none: null, yes: true },
    },
    // As an alert of an earlier version: its labels are among its metadata.
    { name: "c", type: "alert", dedupKey: "ab".repeat(32), dimensions: { host: "h" }, metadataFields: sent },
    { name: "d", type: "alert", dimensions: { host: "h" }, metadataFields: sent },
  ]);
  const posted = await tool(server, tenant.headers)("POST", "/api/v2/alerts", [
    { labels: { alertname: "e", host: "h", reason: "why", "label.x": "l" } },
  ]);
  expect(posted.status).toBe(200);
  const names = [
    ...Object.keys({ host: "", empty: "", list: "", map: "", none: "", yes: "", y: "", ...sent }),
    "severity",
    "type",
    ...Object.keys(metadata),
  ];
  let seen = 0;
  for await (const page of openAlerts(db, tenant.id, { matchers: [], path: "", pace: paced() })) {
    for (const { event, occurrence, labels } of page) {
      for (const name of names) {
        const [row] = await db<{ value: string | null }[]>`
          select ${labelSql(db, name)} as value from occurrences o ${lookedUp(db, tenant.id)}
          where o.tenant_id = ${tenant.id} and o.event_id = ${event.id} and o.number = ${occurrence.number}`;
        expect([event.name, name, row?.value ?? ""]).toEqual([event.name, name, labelOf(labels, name)]);
      }
      seen += 1;
    }
  }
  expect(seen).toBe(5);
});

test.each([
  [{ labels: ["a", "a"] }, "labels"],
  [{ labels: [""] }, "labels[0]"],
  [{ labels: Array.from({ length: 9 }, (_, i) => `l${i}`) }, "labels"],
  [{ pageToken: "x" }, "pageToken"],
  [{ query: { sortBy: [{ byField: { field: "name" } }] } }, "query.sortBy"],
])("%j is refused at %s", async (body, field) => {
  const { call } = await place();
  const answer = await call("POST", "/v1/events:group", body);
  expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(field) } });
});
