import { expect, test } from "vitest";
import { groupPlace } from "./group-place.ts";

type Json = Record<string, unknown>;
const closed = { status: "STATUS_CLOSED" };
const quick = { by: ["source"], waitSec: "0", intervalSec: "1" };

const names = (count: number) => Array.from({ length: count }, (_, i) => `alert ${i}`);

test("500 alerts are one message, and their end is one", async () => {
  const { rule, reportAll, arrive, until, ok } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: { by: ["source"], waitSec: "1", intervalSec: "1" } });
  const all = names(500);
  await reportAll(all.slice(0, 250));
  await reportAll(all.slice(250));
  const [first] = await arrive(1);
  expect(first).toMatchObject({
    occasion: "first",
    clear: false,
    count: 500,
    event: null,
    entity: null,
    group_labels: { source: "web" },
  });
  expect(first?.alerts).toHaveLength(100);
  await reportAll(all, closed);
  await until("clear SENT", "first SENT");
  const [, last] = await arrive(2);
  expect(last).toMatchObject({ occasion: "clear", clear: true, count: 500, group_key: first?.group_key });
  expect(((last?.alerts ?? []) as Json[]).every(({ status }) => status === "resolved")).toBe(true);
  const { deliveries } = await ok("GET", "/v1/notification/deliveries");
  expect(deliveries).toMatchObject([
    { occasion: "clear", memberCount: 500, resolvedCount: 500, groupLabels: { source: "web" }, eventId: "" },
    { occasion: "first", memberCount: 500, groupLabels: { source: "web" } },
  ]);
});

test("what fires later and what ends are said by the next message, and without sendUpdates no end is", async () => {
  const { rule, report, arrive, bodies, until } = await groupPlace();
  await rule("told", { sendUpdates: true, grouping: quick });
  await report("a");
  await arrive(1);
  await report("b");
  await arrive(2);
  await report("a", closed);
  const [one, two, three] = await arrive(3);
  expect(one).toMatchObject({
    occasion: "first",
    count: 1,
    event: { name: "a" },
    entity: { dimensions: { source: "web" } },
  });
  expect(two).toMatchObject({ occasion: "members", count: 2, event: null });
  expect(three).toMatchObject({
    occasion: "members",
    count: 2,
    alerts: [{ status: "resolved" }, { status: "firing" }],
  });
  await report("b", closed);
  await until("clear SENT", "members SENT", "members SENT", "first SENT");
  expect(bodies()).toHaveLength(4);
});

test("a group without sendUpdates lists what fires alone, and ends in silence", async () => {
  const { rule, report, arrive, until, flushed } = await groupPlace();
  await rule("r", { grouping: quick });
  await report("a");
  await arrive(1);
  await report("a", closed);
  await report("b");
  const [, second] = await arrive(2);
  expect(second).toMatchObject({ count: 1, alerts: [{ status: "firing", labels: { alertname: "b" } }] });
  await report("b", closed);
  await flushed();
  await until(
    ...((second?.occasion === "first" ? ["first SENT", "first SENT"] : ["members SENT", "first SENT"]) as string[]),
  );
});

test("what a silence holds joins when it ends, and what ends before its wait does is never said", async () => {
  const { rule, report, silence, arrive, ok, deliveries, flushed } = await groupPlace();
  const { id } = await silence({ matchers: ["alertname=a"] });
  await rule("r", { sendUpdates: true, grouping: { by: [], waitSec: "1", intervalSec: "60" } });
  await report("a");
  await flushed();
  expect(await deliveries()).toEqual([]);
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  expect(await arrive(1)).toMatchObject([{ count: 1, event: { name: "a" } }]);
  await rule("short", { sendUpdates: true, grouping: { by: ["alertname"], waitSec: "1", intervalSec: "1" } }, "e");
  await report("b");
  await report("b", closed);
  await flushed();
  expect((await deliveries()).filter(({ destination }) => destination === "e")).toEqual([]);
});

test("a delivery is found by each of its members, also by those that its message does not say", async () => {
  const { rule, reportAll, arrive, deliveries, ok } = await groupPlace();
  await rule("r", { grouping: { by: [], waitSec: "1", intervalSec: "60" } });
  await reportAll(names(120));
  await arrive(1);
  const { results } = (await ok("POST", "/v1/events:search", { query: { pageInput: { limit: 200 } } })) as {
    results: Json[];
  };
  expect(results).toHaveLength(120);
  const ids = results.flatMap(({ id }) => id as string);
  for (const id of ids)
    expect(await deliveries(`?eventId=${encodeURIComponent(id)}`)).toMatchObject([{ memberCount: 120 }]);
  expect(await deliveries("?entityId=AAAA")).toEqual([]);
  const [{ id } = {}] = await deliveries();
  const page = (token: string) =>
    ok(
      "GET",
      `/v1/notification/deliveries/${id}/members?pageSize=100&pageToken=${encodeURIComponent(token)}`,
    ) as Promise<{
      members: Json[];
      nextPageToken: string;
      totalCount: string;
    }>;
  const first = await page("");
  const last = await page(first.nextPageToken);
  expect([first.totalCount, last.totalCount, last.nextPageToken]).toEqual(["120", "120", ""]);
  const members = [...first.members, ...last.members];
  expect(new Set(members.map(({ eventId }) => eventId))).toEqual(new Set(ids));
  expect(members.every(({ resolved, occurrenceId }) => resolved === false && occurrenceId !== "")).toBe(true);
});

test("a rule that is grouped anew says what it has sent once by the old groups, ends them, and sends the new ones", async () => {
  const { rule, report, arrive, ok } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: { by: ["source"], waitSec: "0", intervalSec: "1" } });
  await report("a");
  await arrive(1);
  await ok("PUT", "/v1/notification/rules/r", { grouping: { by: ["alertname"], waitSec: "0", intervalSec: "1" } });
  const [one, two, three] = await arrive(3);
  expect([one?.occasion, two?.occasion, three?.occasion]).toEqual(["first", "clear", "first"]);
  expect(two?.group_key).toBe(one?.group_key);
  expect(three).toMatchObject({ group_labels: { alertname: "a" } });
});

test.each([
  [{ grouping: { by: ["a", "a"] } }, "grouping.by[1]"],
  [{ grouping: { by: ["...", "a"] } }, "grouping.by[0]"],
  [{ grouping: { waitSec: "3601" } }, "grouping.waitSec"],
  [{ grouping: { intervalSec: "0" } }, "grouping.intervalSec"],
  [{ grouping: { by: Array.from({ length: 33 }, (_, i) => `l${i}`) } }, "grouping.by"],
  [{ grouping: {}, repeat: true }, "repeatWhile"],
])("a rule with %j is refused at %s", async (more, path) => {
  const { call } = await groupPlace();
  const answer = await call("POST", "/v1/notification/rules", { name: "r", ...more });
  expect(answer).toMatchObject({ status: 400 });
  expect(JSON.stringify(answer.body)).toContain(path);
});

test("grouping is answered with its defaults, and taken away by a change that leaves it out", async () => {
  const { ok, rule } = await groupPlace();
  await rule("r", { grouping: { by: ["cluster"] } });
  const { rule: made } = (await ok("GET", "/v1/notification/rules/r")) as { rule: Json };
  expect(made.grouping).toEqual({ by: ["cluster"], waitSec: "30", intervalSec: "300" });
  await ok("PUT", "/v1/notification/rules/r", { grouping: null });
  expect(((await ok("GET", "/v1/notification/rules/r")) as { rule: Json }).rule.grouping).toBeNull();
});

test("amtool and karma see the groups of rules, at each destination, and what none groups as one", async () => {
  const { ok, made, rule, report, tenant, server, receiver } = await groupPlace();
  await made("destinations", { name: "other", type: { webhook: { url: receiver.url } } });
  await rule("r", { matchers: ["alertname=~disk.*"], triggerNames: [], grouping: { by: ["source"] } });
  await ok("PUT", "/v1/notification/rules/r", { destinationNames: ["d", "other"] });
  for (const name of ["disk 1", "disk 2", "fan"]) await report(name);
  const answer = await fetch(`${server.url}/api/v2/alerts/groups`, { headers: tenant.headers });
  const groups = (await answer.json()) as { labels: Json; receiver: { name: string }; alerts: { labels: Json }[] }[];
  const told = groups.map(({ labels, receiver: { name }, alerts }) => [
    name,
    labels,
    alerts.map((each) => each.labels.alertname).sort(),
  ]);
  expect(told).toEqual([
    ["belfry", {}, ["fan"]],
    ["d", { source: "web" }, ["disk 1", "disk 2"]],
    ["other", { source: "web" }, ["disk 1", "disk 2"]],
  ]);
});

test("an explanation of a member says which message it waits for, and which it was in", async () => {
  const { rule, report, reportAll, made, ok, arrive } = await groupPlace();
  await rule("r", { grouping: { by: [], waitSec: "2", intervalSec: "3600" } });
  await reportAll(["a", "b"]);
  await report("c", { timestamp: String(Date.now() + 60_000) });
  const { results } = (await ok("POST", "/v1/events:search", { query: {} })) as { results: { occurrences: Json[] }[] };
  const occurrenceId = results[0]?.occurrences[0]?.id as string;
  const explained = () => made("rules/r:explain", { occurrenceId }) as Promise<{ outcome: string; steps: Json[] }>;
  const step = async () => (await explained()).steps.find((each) => each.step === "group");
  await expect.poll(step).toMatchObject({ result: "waiting", untilTime: expect.any(String) });
  expect(await explained()).toMatchObject({ outcome: "WAITING" });
  await arrive(1);
  await expect.poll(step).toMatchObject({ result: "passed", reason: expect.stringMatching(/with 2 others$/) });
  await expect.poll(async () => (await explained()).outcome).toBe("NOTIFIED");
});

test("an explanation of what has not joined its group yet says that it waits", async () => {
  const { rule, report, made, ok } = await groupPlace();
  await rule("r", { grouping: { by: [], waitSec: "1", intervalSec: "3600" } });
  await report("a");
  const { results } = (await ok("POST", "/v1/events:search", { query: {} })) as { results: { occurrences: Json[] }[] };
  const occurrenceId = results[0]?.occurrences[0]?.id as string;
  const outcomes = new Set<string>();
  while (!outcomes.has("NOTIFIED")) {
    const { outcome } = (await made("rules/r:explain", { occurrenceId })) as { outcome: string };
    outcomes.add(outcome);
  }
  expect([...outcomes]).toEqual(["WAITING", "NOTIFIED"]);
});

test("a silenced member waits for its silence alone", async () => {
  const { rule, report, made, ok, flushed } = await groupPlace();
  await rule("r", { grouping: { by: [], waitSec: "1", intervalSec: "1" } });
  await made("silences", { matchers: ["alertname=a"], comment: "works", endsAt: String(Date.now() + 60_000) });
  await report("a");
  const { results } = (await ok("POST", "/v1/events:search", { query: {} })) as { results: { occurrences: Json[] }[] };
  const occurrenceId = results[0]?.occurrences[0]?.id as string;
  const explained = () => made("rules/r:explain", { occurrenceId }) as Promise<{ outcome: string; steps: Json[] }>;
  await expect.poll(async () => (await explained()).outcome).toBe("SILENCED");
  await flushed();
  const { steps } = await explained();
  expect(steps.map(({ step, result }) => `${step} ${result}`)).toEqual([
    "rule passed",
    "trigger passed",
    "match passed",
    "silence stopped",
  ]);
});

test("a group repeats at the exact time while a member is not acknowledged, and says all that fires", async () => {
  const { rule, reportAll, arrive, deliveries, flushed } = await groupPlace();
  const repeats = { repeat: true, repeatInterval: "1", repeatWhile: "REPEAT_WHILE_UNACKNOWLEDGED" };
  await rule("r", { ...repeats, grouping: { by: [], waitSec: "1", intervalSec: "3600" } });
  await reportAll(["a", "b"]);
  const [first, second, third] = await arrive(3);
  expect([first, second, third]).toMatchObject([
    { occasion: "first", count: 2 },
    { occasion: "repeat", count: 2 },
    { occasion: "repeat", count: 2 },
  ]);
  await reportAll(["a", "b"], { acknowledged: true });
  const repeated = async () => {
    await flushed();
    return (await deliveries()).filter(({ occasion }) => occasion === "repeat").length;
  };
  const count = await repeated();
  expect(await repeated()).toBe(count);
});

test("what comes after 1,000 groups is one further group without labels", async () => {
  const { rule, reportAll, ok } = await groupPlace();
  await rule("r", { grouping: { by: ["alertname"], waitSec: "1", intervalSec: "3600" } });
  await reportAll(names(1010));
  const list = (query: string) =>
    ok("GET", `/v1/notification/deliveries?${query}`) as Promise<{
      deliveries: Json[];
      nextPageToken: string;
      totalCount: string;
    }>;
  await expect.poll(async () => (await list("pageSize=1")).totalCount, { timeout: 60_000 }).toBe("1001");
  const first = await list("pageSize=1000");
  const last = await list(`pageSize=1000&pageToken=${encodeURIComponent(first.nextPageToken)}`);
  const all = [...first.deliveries, ...last.deliveries];
  const beyond = all.filter(({ groupLabels }) => Object.keys(groupLabels as Json).length === 0);
  expect(beyond).toMatchObject([{ memberCount: 10 }]);
  expect(new Set(all.map(({ groupKey }) => groupKey)).size).toBe(1001);
});

test("the preview of a rule with groups shows a group of sample members", async () => {
  const { rule, report, ok, made } = await groupPlace();
  await rule("r", { grouping: { by: ["source"] } });
  await report("a");
  const { results } = (await ok("POST", "/v1/events:search", { query: {} })) as { results: Json[] };
  const { previews } = (await made("rules/r:preview", { eventId: results[0]?.id })) as { previews: { body: string }[] };
  expect(JSON.parse(previews[0]?.body ?? "")).toMatchObject({ count: 3, event: null, alerts: [{}, {}, {}] });
  const shown = (await made("rules:preview", { grouped: true })) as { text: string };
  expect(shown.text).toContain("3 firing");
});

test("a disabled rule sends nothing more of its groups, and goes on with them when it is enabled", async () => {
  const { rule, report, arrive, ok, deliveries, flushed } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: quick });
  await report("a");
  await arrive(1);
  await ok("PUT", "/v1/notification/rules/r", { enabled: false });
  await report("a", closed);
  await flushed();
  expect(await deliveries()).toHaveLength(1);
  await ok("PUT", "/v1/notification/rules/r", { enabled: true });
  const [, last] = await arrive(2);
  expect(last).toMatchObject({ occasion: "clear", count: 1 });
});

test("what another server has matched and not yet taken in is waited for before a flush", async () => {
  const { rule, report, arrive, receiver, server, tenant } = await groupPlace();
  await rule("r", { grouping: { by: ["source"], waitSec: "0", intervalSec: "3600" } });
  const { sql } = server.database;
  // As a server leaves it that died with it.
  await sql`
    insert into jobs (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
    select tenant_id, 'notifications.groups', 'left', jsonb_build_object('ruleId', id, 'keys', '["AAAA"]'::jsonb), 1,
      1, 1, 1, ${Date.now() + 3_600_000}, 0
    from rules where tenant_id = ${tenant.id}`;
  await report("a");
  const waiting = async () =>
    (await sql`select from jobs where tenant_id = ${tenant.id} and payload ? 'untilMs'`).count;
  await expect.poll(waiting, { interval: 5 }).toBe(1);
  expect(receiver.received).toEqual([]);
  await sql`update jobs set lease_until_ms = 0 where tenant_id = ${tenant.id} and id = 'left'`;
  await sql`update due_work set due_ms = 1 where tenant_id = ${tenant.id}`;
  expect(await arrive(1)).toMatchObject([{ count: 1 }]);
});

test("a member whose labels change leaves its group at its next flush as ended, and joins the other", async () => {
  const { rule, report, arrive } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: { by: ["team"], waitSec: "0", intervalSec: "1" } });
  await report("a", { metadataFields: { team: "red" } });
  await arrive(1);
  await report("a", { metadataFields: { team: "blue" } });
  await report("b", { metadataFields: { team: "red" } });
  const all = await arrive(3);
  const red = all.find(({ occasion }) => occasion === "members");
  expect(red).toMatchObject({ group_labels: { team: "red" }, count: 2 });
  expect(red?.alerts.map(({ status, labels }) => [(labels as Json).alertname, status])).toEqual([
    ["a", "resolved"],
    ["b", "firing"],
  ]);
  const blue = all.find(({ group_labels: labels }) => (labels as Json).team === "blue");
  expect(blue).toMatchObject({ occasion: "first", count: 1, alerts: [{ status: "firing" }] });
});

test("a destination that is added hears of a group whole at its next flush, and one that is removed hears no end", async () => {
  const { rule, made, report, reportAll, arrive, ok, receiver, deliveries } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: quick });
  await made("destinations", { name: "e", type: { webhook: { url: `${receiver.url}/e` } } });
  await report("a");
  await arrive(1);
  await ok("PUT", "/v1/notification/rules/r", { destinationNames: ["e"] });
  await report("b");
  const [, second] = await arrive(2);
  expect(second?.occasion).toBe("first");
  expect(second?.alerts.map(({ labels }) => (labels as Json).alertname)).toContain("a");
  await reportAll(["a", "b"], closed);
  const sentTo = async (path: string) =>
    (await deliveries("?status=SENT")).flatMap(({ destination, occasion }) => (destination === path ? occasion : []));
  await expect.poll(() => sentTo("e")).toContain("clear");
  expect(await sentTo("d")).toEqual(["first"]);
});

test("grouping that is taken away ends the open groups once; what fires still, and what fires next, is a message of its own", async () => {
  const { rule, reportAll, arrive, ok } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: quick });
  await reportAll(["a", "b"]);
  await arrive(1);
  await ok("PUT", "/v1/notification/rules/r", { grouping: null });
  const [first, end, ...own] = await arrive(4);
  expect(end).toMatchObject({ occasion: "clear", count: 2, group_key: first?.group_key });
  const named = (all: readonly Json[]) =>
    all.map(({ occasion, event }) => `${occasion} ${(event as Json).name}`).sort();
  expect(named(own as unknown as Json[])).toEqual(["first a", "first b"]);
  await reportAll(["c"]);
  expect(named((await arrive(5)).slice(4) as unknown as Json[])).toEqual(["first c"]);
  await reportAll(["a"], closed);
  expect(named((await arrive(6)).slice(5) as unknown as Json[])).toEqual(["clear a"]);
});

test("what waits for its group is a message of its own once the grouping is taken away, and ends by itself", async () => {
  const { rule, report, arrive, ok } = await groupPlace();
  await rule("r", { sendUpdates: true, grouping: { by: [], waitSec: "3600", intervalSec: "3600" } });
  await report("a");
  await ok("PUT", "/v1/notification/rules/r", { grouping: null });
  await arrive(1);
  await report("a", closed);
  const [first, end] = await arrive(2);
  expect(first).toMatchObject({ occasion: "first", event: { name: "a" } });
  expect(end).toMatchObject({ occasion: "clear", event: { name: "a" } });
});

test("series are members of a group by their labels and those of their entity", async () => {
  const { rule, made, arrive, ok, until } = await groupPlace();
  await made("triggers", { name: "load", type: { metricThreshold: { metricName: "load", max: 1 } } });
  const grouping = { by: ["cluster"], waitSec: "1", intervalSec: "1" };
  await rule("r", { triggerNames: ["load"], sendUpdates: true, grouping });
  const send = (value: number) =>
    ok("POST", "/v1/data-receiver/metrics", {
      metrics: ["web-1", "web-2"].map((host) => ({
        metric: "load",
        timestamp: String(Date.now()),
        dimensions: { host, cluster: "one" },
        value,
      })),
    });
  await send(5);
  const [first] = await arrive(1);
  expect(first).toMatchObject({ occasion: "first", count: 2, group_labels: { cluster: "one" } });
  expect(first?.alerts.map(({ labels }) => (labels as Json).host)).toEqual(["web-1", "web-2"]);
  await send(0);
  await until("clear SENT", "first SENT");
});

test("a silence over one destination keeps a member from that destination's messages alone", async () => {
  const { rule, made, silence, reportAll, receiver, ok } = await groupPlace();
  await made("destinations", { name: "e", type: { webhook: { url: `${receiver.url}/e` } } });
  await rule("r", { sendUpdates: true, grouping: { by: [], waitSec: "1", intervalSec: "1" } });
  await ok("PUT", "/v1/notification/rules/r", { destinationNames: ["d", "e"] });
  const { id } = await silence({ matchers: ["alertname=a"], destinationNames: ["d"] });
  await reportAll(["a", "b"]);
  const told = (path: string) =>
    receiver.received
      .filter((each) => each.path === path)
      .map(({ body }) => {
        const { occasion, alerts } = JSON.parse(body) as { occasion: string; alerts: { labels: Json }[] };
        return `${occasion} ${alerts.map(({ labels }) => labels.alertname).join()}`;
      });
  await expect.poll(() => [told("/d"), told("/e")]).toEqual([["first b"], ["first a,b"]]);
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  await expect.poll(() => told("/d")).toEqual(["first b", "members a,b"]);
  await reportAll(["a", "b"], closed);
  const all = ["clear a,b", "first a,b"];
  await expect.poll(() => told("/e").toSorted()).toEqual(all);
  await expect.poll(() => told("/d").at(-1)).toBe("clear a,b");
});
