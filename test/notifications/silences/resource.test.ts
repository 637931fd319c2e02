import { expect, test } from "vitest";
import { tool } from "../../integrations/calls.ts";
import { keyHeaders } from "../../support/tenant.ts";
import { v1 } from "../../support/v1.ts";
import { silencePlace } from "./place.ts";

const path = "/v1/notification/silences";

test("a silence is made, shown, listed by state and matcher, and ended", async () => {
  const { silence, ok, call, tenant, inMs } = await silencePlace();
  const active = await silence({ matchers: ["a=b", " c =~ d.+ "], createdBy: "ops" });
  expect(active).toEqual({
    id: expect.stringMatching(/^[\da-f-]{36}$/),
    matchers: ["a=b", " c =~ d.+ "],
    startsAt: expect.stringMatching(/^\d{13}$/),
    endsAt: expect.stringMatching(/^\d{13}$/),
    untilResolved: false,
    ruleNames: [],
    destinationNames: [],
    comment: "c",
    createdBy: "ops",
    author: { clientId: expect.any(String), clientName: expect.any(String), keyPrefix: expect.any(String) },
    state: "ACTIVE",
    trouble: "",
  });
  const pending = await silence({ startsAt: inMs(600_000) });
  expect(pending.state).toBe("PENDING");
  expect(await ok("GET", `${path}/${active.id}`)).toEqual(active);
  const ids = async (query: string) =>
    (await ok("GET", `${path}${query}`)).silences.map(({ id }: { id: string }) => id);
  expect(await ids("")).toEqual([pending.id, active.id]);
  expect(await ids("?state=ACTIVE")).toEqual([active.id]);
  expect(await ids(`?filter=${encodeURIComponent('c=~"d.+"')}`)).toEqual([active.id]);
  const first = await ok("GET", `${path}?pageSize=1`);
  expect(first).toMatchObject({ totalCount: "2", silences: [{ id: pending.id }] });
  expect(await ids(`?pageSize=1&pageToken=${first.nextPageToken}`)).toEqual([active.id]);
  const ended = await ok("POST", `${path}/${pending.id}:expire`, {});
  expect(ended).toMatchObject({ id: pending.id, state: "EXPIRED", startsAt: ended.endsAt });
  expect(await ok("POST", `${path}/${pending.id}:expire`, {})).toEqual(ended);
  expect(await call("PUT", `${path}/${pending.id}`, { ...active })).toMatchObject({ status: 400, body: { code: 9 } });
  expect(await call("GET", `${path}/none`)).toMatchObject({ status: 404, body: { code: 5 } });
  const { entries } = await ok("GET", "/v1/audit-log?pageSize=5");
  expect(JSON.stringify(entries)).toContain(`silence/${pending.id}`);
  expect(tenant.id).toBeDefined();
});

test("a change without a start keeps one that lies ahead: what is open is looked at then", async () => {
  const { silence, call, inMs } = await silencePlace();
  const pending = await silence({ endsAt: undefined, untilResolved: true, startsAt: inMs(600_000) });
  const { startsAt: _, ...sent } = pending as Record<string, unknown>;
  const changed = await call("PUT", `${path}/${pending.id}`, { ...sent, comment: "later" });
  expect(changed).toMatchObject({
    status: 200,
    body: { id: pending.id, state: "PENDING", startsAt: pending.startsAt, comment: "later" },
  });
});

test("a change keeps the identifier where the silence stays the same one, and a refused one changes nothing", async () => {
  const { silence, ok, call, inMs, rule } = await silencePlace();
  await rule("r");
  const made = await silence({ matchers: ["a=b", "c=d"] });
  const put = (id: string, more: object) => call("PUT", `${path}/${id}`, { ...made, ...more });
  const longer = { matchers: ['c="d"', "a=b"], endsAt: inMs(7_200_000), comment: "longer", ruleNames: ["r"] };
  expect(await put(made.id, longer)).toMatchObject({
    status: 200,
    body: { id: made.id, ...longer, startsAt: made.startsAt },
  });
  expect(await put(made.id, { startsAt: undefined, comment: "again" })).toMatchObject({
    body: { id: made.id, startsAt: made.startsAt },
  });
  const before = await ok("GET", `${path}/${made.id}`);
  for (const broken of [
    { matchers: ["a=~("] },
    { comment: "" },
    { endsAt: inMs(-1000) },
    { ruleNames: ["none"] },
    { untilResolved: true },
  ])
    expect(await put(made.id, broken), JSON.stringify(broken)).toMatchObject({ status: 400, body: { code: 3 } });
  expect(await ok("GET", `${path}/${made.id}`)).toEqual(before);
  const other = await put(made.id, { matchers: ["a=x"] });
  expect(other.body.id).not.toBe(made.id);
  expect(await ok("GET", `${path}/${made.id}`)).toMatchObject({ state: "EXPIRED" });
  expect(await ok("GET", `${path}/${other.body.id}`)).toMatchObject({
    state: "ACTIVE",
    startsAt: before.startsAt === other.body.startsAt ? "" : other.body.startsAt,
  });
});

test.each([
  [{ matchers: [] }, "REQUIRED", "matchers"],
  [
    { matchers: ['a=""', "b!=x"] },
    "CONDITION",
    "matchers: must hold at least one matcher that does not match the empty text",
  ],
  [{ matchers: ["a=b", "a b"] }, "CONDITION", "matchers[1]: column 3: =, !=, =~ or !~ follows the name"],
  [{ comment: "" }, "REQUIRED", "comment: is required"],
  [{ comment: "x".repeat(1025) }, "STRING_MAX_LEN", "comment"],
  [{ endsAt: "1" }, "RANGE", "endsAt: must be after startsAt, and after now"],
  [{ endsAt: undefined }, "REQUIRED", "endsAt: is required, or untilResolved"],
  [{ untilResolved: true }, "EXCLUDED", "endsAt: must be left out beside untilResolved"],
  [{ ruleNames: ["none"] }, "UNKNOWN_NAME", 'ruleNames[0]: there is no rule named "none"'],
  [{ destinationNames: ["none"] }, "UNKNOWN_NAME", 'destinationNames[0]: there is no destination named "none"'],
])("%j is refused with its place and the rule it breaks: %s", async (more, rule, message) => {
  const { call, inMs } = await silencePlace();
  const answer = await call("POST", path, { matchers: ["a=b"], endsAt: inMs(1000), comment: "c", ...more });
  expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(message) } });
  expect(answer.body.details[0].fieldViolations).toMatchObject([{ reason: `FIELD_RULE_${rule}` }]);
});

test("one negative matcher of the empty text is enough", async () => {
  const { silence } = await silencePlace();
  expect(await silence({ matchers: ['a!=""'] })).toMatchObject({ state: "ACTIVE" });
});

test("who may read only lists silences, and makes none at either door", async () => {
  const { server, tenant, inMs } = await silencePlace();
  const headers = await keyHeaders(server.database.sql, tenant.id, "USER", "read_only_user");
  const call = v1(server.url, headers);
  expect((await call("GET", path)).status).toBe(200);
  const body = { matchers: ["a=b"], endsAt: inMs(1000), comment: "c" };
  expect(await call("POST", path, body)).toMatchObject({ status: 403 });
  const tools = tool(server, headers);
  expect((await tools("GET", "/api/v2/silences")).body).toEqual([]);
  expect((await tools("POST", "/api/v2/silences", {})).status).toBe(403);
});

test("a tool's change keeps the scope, ends untilResolved, and alerts show the silences without one", async () => {
  const { silence, server, tenant, rule, report, ok } = await silencePlace();
  await rule("r");
  await report("disk");
  const tools = tool(server, tenant.headers);
  const scoped = await silence({ endsAt: undefined, untilResolved: true, ruleNames: ["r"] });
  const { body: shown } = await tools("GET", `/api/v2/silence/${scoped.id}`);
  expect(shown).toMatchObject({ annotations: { "belfry.ruleNames": '["r"]' }, status: { state: "active" } });
  expect(Date.parse(shown.endsAt) - Date.now()).toBeGreaterThan(86_000_000);
  const alerts = async (query = "") => (await tools("GET", `/api/v2/alerts${query}`)).body;
  expect(await alerts()).toMatchObject([{ receivers: [{ name: "d" }], status: { state: "active", silencedBy: [] } }]);
  expect((await tools("POST", "/api/v2/silences", { ...shown, comment: "tool" })).body).toEqual({
    silenceID: scoped.id,
  });
  expect(await ok("GET", `${path}/${scoped.id}`)).toMatchObject({
    ruleNames: ["r"],
    untilResolved: false,
    comment: "tool",
  });
  const wide = await silence();
  expect(await alerts()).toMatchObject([{ status: { state: "suppressed", silencedBy: [wide.id] } }]);
  expect([await alerts("?silenced=false"), (await alerts("?active=false")).length]).toEqual([[], 1]);
  expect((await tools("GET", "/api/v2/receivers")).body).toEqual([{ name: "belfry" }, { name: "d" }]);
  const { entries } = await ok("GET", "/v1/audit-log?pageSize=10");
  expect(JSON.stringify(entries)).toContain("alertmanager/PostSilences");
});

test("a silence that a new one replaces has an audit row as the new one has, with the RPC that was called, at both doors", async () => {
  const { silence, server, tenant, call, ok, inMs } = await silencePlace();
  const rows = async (rpc: string) =>
    (await ok("GET", "/v1/audit-log?pageSize=100")).entries
      .filter((each: { rpc: string }) => each.rpc === rpc)
      .map(({ resource }: { resource: string }) => resource)
      .sort();
  const both = (...ids: string[]) => ids.map((id) => `silence/${id}`).sort();
  const old = await silence();
  const wanted = { matchers: ["source=db"], endsAt: inMs(3_600_000), comment: "c" };
  const { body: made } = await call("PUT", `${path}/${old.id.toUpperCase()}`, wanted);
  const rpc = "belfry.notifications.v1.SilenceService/ReplaceSilence";
  expect(made.id).not.toBe(old.id);
  expect(await rows(rpc)).toEqual(both(old.id, made.id));
  await ok("PUT", `${path}/${made.id}`, { ...wanted, comment: "in place" });
  expect(await rows(rpc)).toEqual(both(old.id, made.id, made.id));

  const tools = tool(server, tenant.headers);
  const matcher = { name: "source", value: "web", isRegex: false, isEqual: null };
  const sent = { matchers: [matcher], startsAt: new Date().toISOString(), createdBy: "ops", comment: "c" };
  const post = async (more: object) =>
    (
      await tools("POST", "/api/v2/silences", {
        ...sent,
        endsAt: new Date(Date.now() + 3_600_000).toISOString(),
        ...more,
      })
    ).body.silenceID as string;
  const first = await post({ id: null });
  const second = await post({ id: first, matchers: [{ ...matcher, isEqual: false, value: "" }] });
  expect(second).not.toBe(first);
  expect(await rows("alertmanager/PostSilences")).toEqual(both(first, first, second));
  // One that is over begins anew under another id.
  await tools("DELETE", `/api/v2/silence/${second}`);
  const third = await post({ id: second });
  expect(await rows("alertmanager/PostSilences")).toEqual(both(first, first, second, second, third));
});

test("a tool's matcher whose isEqual is null, or left out, compares for equality", async () => {
  const { server, tenant, ok, inMs } = await silencePlace();
  const times = { startsAt: new Date().toISOString(), endsAt: new Date(Number(inMs(3_600_000))).toISOString() };
  for (const more of [{ isEqual: null }, {}]) {
    const matchers = [{ name: "a", value: "b", isRegex: false, ...more }];
    const sent = { id: null, matchers, ...times, createdBy: "me", comment: "c", annotations: null };
    const { status, body } = await tool(server, tenant.headers)("POST", "/api/v2/silences", sent);
    expect(status).toBe(200);
    expect(await ok("GET", `${path}/${body.silenceID}`)).toMatchObject({ matchers: ['a="b"'] });
  }
});

test("an explanation names the client as a silence's author, and what was sent as createdBy beside it", async () => {
  const { silence, rule, report, ok } = await silencePlace();
  await rule("r");
  const { author } = (await silence({ createdBy: "The Chief" })) as unknown as { author: { clientName: string } };
  await report("disk");
  const { results } = await ok("POST", "/v1/events:search", { query: {} });
  const about = { occurrenceId: results[0].occurrences[0].id };
  const { steps } = await ok("POST", "/v1/notification/rules/r:explain", about);
  const step = steps.find((each: { step: string }) => each.step === "silence");
  expect(step).toMatchObject({ author: author.clientName, createdBy: "The Chief" });
});

test("the 10,001st that has not ended is code 8", async () => {
  const { silence, server, tenant, call, inMs } = await silencePlace();
  const { id } = await silence();
  await server.database.sql`
    insert into silences select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid()))).*
    from silences s, generate_series(1, 9999) where s.tenant_id = ${tenant.id} and s.id = ${id}`;
  // The total knows none of them; without it the rows are counted.
  await server.database.sql`update tenant_counts set counted_ms = 0 where tenant_id = ${tenant.id}`;
  const body = { matchers: ["a=b"], endsAt: inMs(1000), comment: "c" };
  expect(await call("POST", path, body)).toMatchObject({ status: 429, body: { code: 8 } });
});

test("a preview lists labels of what it matches, at most 20 values of each and none that is long", async () => {
  const { report, made } = await silencePlace();
  for (let i = 0; i < 22; i++) await report(`fan ${i}`, { metadataFields: { note: "x".repeat(256), rack: "7" } });
  const { labels } = await made("silences:preview", { matchers: ["source=web"] });
  const values = Object.fromEntries(labels.map((each: { name: string; values: string[] }) => [each.name, each.values]));
  expect(values).toEqual({ alertname: expect.anything(), rack: ["7"], severity: ["error"], source: ["web"] });
  expect(values.alertname).toHaveLength(20);
});
