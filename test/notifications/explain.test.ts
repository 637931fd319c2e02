import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { eventIds } from "../../src/entities/identity.ts";
import { occurrenceIdText } from "../../src/events/occurrence-id.ts";
import { forgetOccurrences, nilRule, unmatched, writeMatches } from "../../src/notifications/rules/match-store.ts";
import { occurrenceSubject } from "../../src/notifications/subject/subject.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const receiver = await httpReceiver();
const tenant = await testTenant(server.database.sql);
const call = v1(server.url, tenant.headers);
const dimensions = { source: "web-1" };

interface Step {
  step: string;
  result: string;
  reason: string;
  path: string;
  time: string | null;
  untilTime: string | null;
  window: string;
}
interface Explanation {
  outcome: string;
  steps: Step[];
  deliveries: { id: string; status: string; subject: string }[];
}

async function ok(method: string, path: string, body?: object) {
  const answer = await call(method, path, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as Record<string, unknown>;
}
const occurrenceOf = (name: string) => occurrenceIdText(eventIds(tenant.id, dimensions, name).eventId, 1);
const explain = async (rule: string, name: string) =>
  (await ok("POST", `/v1/notification/rules/${rule}:explain`, {
    occurrenceId: occurrenceOf(name),
  })) as unknown as Explanation;
/** Waits until what was stored is looked at, and what was decided has come to this. */
async function until(rule: string, name: string, outcome: string): Promise<Explanation> {
  for (;;) {
    const found = await explain(rule, name);
    const unseen = stepOf(found, "match")?.reason?.endsWith("about to be looked at");
    if (found.outcome === outcome && !unseen) return found;
    await sleep(50);
  }
}
const put = (name: string, more: object = {}) =>
  ok("POST", "/v1/data-receiver/events", {
    events: [
      { name, timestamp: String(Date.now()), dimensions, severity: "SEVERITY_ERROR", status: "STATUS_OPEN", ...more },
    ],
  });
const rule = (name: string, more: object = {}) =>
  ok("POST", "/v1/notification/rules", {
    name,
    enabled: true,
    triggerNames: ["disks"],
    destinationNames: ["ops"],
    ...more,
  });
const stepOf = ({ steps }: Explanation, name: string) => steps.find(({ step }) => step === name);

beforeAll(async () => {
  receiver.answer(answering(200));
  const equals = (field: string, stringVal: string) => ({ equals: { field, value: { stringVal } } });
  const clause = {
    and: { clauses: [equals("entity.dimensions.source", "web-1"), { contains: { field: "name", value: "disk" } }] },
  };
  await ok("POST", "/v1/notification/triggers", { name: "disks", type: { event: { query: { clause } } } });
  await ok("POST", "/v1/notification/destinations", { name: "ops", type: { webhook: { url: receiver.url } } });
});

test("what was sent: each step, and the delivery, which can be looked up", async () => {
  await rule("told");
  await put("disk full");
  const found = await until("told", "disk full", "NOTIFIED");
  expect(found.steps.map(({ step, result }) => `${step} ${result}`)).toEqual([
    "rule passed",
    "trigger passed",
    "match passed",
    "repeat stopped",
    "delivery SENT",
  ]);
  expect(stepOf(found, "repeat")?.reason).toBe("it was decided then, and the rule does not repeat");
  const [delivery] = found.deliveries;
  expect(delivery?.subject).toBe(occurrenceOf("disk full"));
  expect(await ok("GET", `/v1/notification/deliveries/${delivery?.id}`)).toEqual({ delivery });
  const again = await ok("POST", "/v1/notification/rules/told:explain", { subject: delivery?.subject });
  expect(again.outcome).toBe("NOTIFIED");
});

test("the link in a notification leads to the occurrence in the console", async () => {
  await rule("linked", { message: "{{{url}}}" });
  const event = { name: "disk full", timestamp: String(Date.now()), dimensions };
  const { previews } = (await ok("POST", "/v1/notification/rules/linked:preview", { event })) as {
    previews: { body: string }[];
  };
  const link = new URL(JSON.parse(previews[0]?.body ?? "{}").message);
  expect([link.pathname, link.search]).toEqual(["/console/", ""]);
  expect(decodeURIComponent(link.hash)).toBe(`#/occurrences/${occurrenceOf("disk full")}`);
});

test("what does not match: the part of the clause that is false", async () => {
  await put("fan stuck");
  const found = await until("told", "fan stuck", "NOT_MATCHED");
  expect(found.deliveries).toEqual([]);
  expect(stepOf(found, "trigger")).toMatchObject({
    result: "stopped",
    reason: 'trigger "disks" does not match',
    path: "type.event.query.clause.and.clauses[1].contains",
  });
});

test("what waits, and until when; what was cancelled, and why", async () => {
  await rule("patient", { delaySec: 600 });
  await put("disk slow");
  const waiting = await until("patient", "disk slow", "WAITING");
  expect(Date.parse(stepOf(waiting, "delay")?.untilTime ?? "")).toBeGreaterThan(Date.now() + 500_000);
  expect(waiting.deliveries).toMatchObject([{ status: "PENDING" }]);
  await put("disk slow", { status: "STATUS_CLOSED" });
  const cancelled = await until("patient", "disk slow", "CANCELLED");
  expect(stepOf(cancelled, "delivery")?.reason).toContain("the condition is over");
  expect(stepOf(cancelled, "trigger")?.reason).toBe(
    'trigger "disks" does not name status, and the occurrence is closed',
  );
});

test("what rules have led to: that its own rules, and of a long chain all, do not start by it", async () => {
  await rule("caused");
  await put("disk made");
  await until("caused", "disk made", "NOTIFIED");
  const { eventId } = eventIds(tenant.id, dimensions, "disk made");
  const explained = async (chain: readonly string[]) => {
    await forgetOccurrences(server.database.sql, tenant.id, [{ eventId, number: 1 }]);
    const { entityId } = eventIds(tenant.id, dimensions, "");
    await writeMatches(server.database.sql, tenant.id, [
      { ...unmatched, subject: occurrenceSubject({ id: eventId, entityId }, 1), ruleId: nilRule, chain },
    ]);
    await server.database.sql`delete from delivery_history where tenant_id = ${tenant.id} and event_id = ${eventId}`;
    const { outcome, steps } = await explain("caused", "disk made");
    return [outcome, ...steps.filter(({ step }) => step === "chain" || step === "match").map(({ reason }) => reason)];
  };
  expect(await explained(["other"])).toEqual([
    "WAITING",
    "the rule has not seen it match yet: its next report decides",
  ]);
  expect(await explained(["caused", "other"])).toEqual([
    "SUPPRESSED",
    "the rule led to this event itself, so it does not start by it",
  ]);
  expect(await explained(["1", "2", "3", "4", "5"])).toEqual([
    "SUPPRESSED",
    "5 rules led to this event already, so no rule starts by it",
  ]);
});

test("what repeats by the clock: when next, and that it does not while it is acknowledged or closed", async () => {
  const interval = { repeat: true, repeatInterval: "600" };
  await rule("clocked", { ...interval, repeatWhile: "REPEAT_WHILE_UNACKNOWLEDGED" });
  await put("disk worn");
  const found = await until("clocked", "disk worn", "NOTIFIED");
  const repeat = stepOf(found, "repeat");
  expect(repeat).toMatchObject({ result: "waiting", reason: "it was decided then, and is repeated by the clock" });
  expect(Date.parse(repeat?.untilTime ?? "") - Date.parse(repeat?.time ?? "")).toBe(600_000);
  await put("disk worn", { acknowledged: true });
  expect(stepOf(await explain("clocked", "disk worn"), "repeat")).toMatchObject({
    result: "stopped",
    reason: "it was decided then, and is not repeated while it is acknowledged",
    untilTime: null,
  });
});

test("what begins again within repeatInterval of its notification: until when it waits", async () => {
  const clause = { equals: { field: "severity", value: { stringVal: "SEVERITY_ERROR" } } };
  await ok("POST", "/v1/notification/triggers", { name: "errors", type: { event: { query: { clause } } } });
  await rule("flapping", { triggerNames: ["errors"], repeat: true, repeatInterval: "600" });
  await put("fan slow");
  await until("flapping", "fan slow", "NOTIFIED");
  await put("fan slow", { severity: "SEVERITY_INFO" });
  await put("fan slow");
  const found = await until("flapping", "fan slow", "WAITING");
  expect(stepOf(found, "delay")).toBeUndefined();
  expect(stepOf(found, "repeat")).toMatchObject({
    result: "waiting",
    reason: "it began again before repeatInterval had elapsed, and waits until then",
  });
  expect(Date.parse(stepOf(found, "repeat")?.untilTime ?? "")).toBeGreaterThan(Date.now() + 500_000);
});

test("what is muted now: the window, and when it ends", async () => {
  await rule("quiet", { muteDuringMaintenance: true });
  const specification = {
    name: "Sunday",
    query: { clause: { filter: { field: "dimensions.source", operation: "OP_EQUALS", value: "web-1" } } },
    schedule: { start: Date.now() - 60_000, duration: 3_600_000, timeZone: "UTC" },
    runMode: "MANUAL",
    maintenanceState: 300,
  };
  const made = await call("POST", "/v1/modelcontext/maintwindows", { specification });
  expect(made.status).toBeLessThan(300);
  await ok("POST", "/v1/modelcontext/maintwindows:start", made.body as object);
  const { entityId } = eventIds(tenant.id, dimensions, "");
  for (;;) {
    const [row] = await server.database.sql`
      select from maintenance_members where tenant_id = ${tenant.id} and entity_id = ${entityId}`;
    if (row !== undefined) break;
    await sleep(20);
  }
  await put("disk gone");
  const found = await until("quiet", "disk gone", "MUTED");
  expect(found.deliveries).toEqual([]);
  expect(stepOf(found, "maintenance")).toMatchObject({ result: "stopped", window: "Sunday" });
  expect(Date.parse(stepOf(found, "maintenance")?.untilTime ?? "")).toBeGreaterThan(Date.now());
});

test("a rule that is disabled, and what is not there", async () => {
  await rule("off", { enabled: false });
  const found = await explain("off", "disk full");
  expect(found).toMatchObject({ outcome: "RULE_DISABLED" });
  expect(stepOf(found, "trigger")?.result).toBe("passed");
  const missing = async (name: string, about: object) =>
    (await call("POST", `/v1/notification/rules/${name}:explain`, about)).body;
  const occurrenceId = occurrenceOf("disk full");
  expect(await missing("nobody", { occurrenceId })).toMatchObject({ code: 5, message: 'no rule found for "nobody"' });
  expect(await missing("off", { occurrenceId: occurrenceOf("unknown") })).toMatchObject({ code: 5 });
  expect(await missing("off", { subject: Buffer.alloc(24, 1).toString("base64url") })).toMatchObject({ code: 5 });
  expect(await missing("off", {})).toMatchObject({ code: 3 });
});

describe("all rules of an occurrence", async () => {
  const other = await testTenant(server.database.sql);
  const own = v1(server.url, other.headers);
  const done = async (method: string, path: string, body?: object) => {
    const answer = await own(method, path, body);
    expect(answer).toMatchObject({ status: 200 });
    // biome-ignore lint/suspicious/noExplicitAny: JSON of several shapes
    return answer.body as any;
  };
  const id = occurrenceIdText(eventIds(other.id, dimensions, "disk full").eventId, 1);
  const explainAll = (body: object = {}) => done("POST", `/v1/notification/occurrences/${id}:explain`, body);
  // biome-ignore lint/suspicious/noExplicitAny: JSON of several shapes
  const outcomes = ({ rules }: any) => rules.map(({ rule, outcome }: any) => `${rule} ${outcome}`);

  beforeAll(async () => {
    const clause = (value: string) => ({ contains: { field: "name", value } });
    for (const value of ["disk", "fan"])
      await done("POST", "/v1/notification/triggers", {
        name: value,
        type: { event: { query: { clause: clause(value) } } },
      });
    for (const name of ["ops", "pager"])
      await done("POST", "/v1/notification/destinations", { name, type: { webhook: { url: receiver.url } } });
    const make = (name: string, more: object = {}) =>
      done("POST", "/v1/notification/rules", {
        name,
        enabled: true,
        triggerNames: ["disk"],
        destinationNames: ["ops"],
        ...more,
      });
    await make("a off", { enabled: false });
    await make("b fans", { triggerNames: ["fan"] });
    await make("c late", { delaySec: 600, destinationNames: ["ops", "pager"] });
    await make("d told");
    await make("e own", { triggerNames: [], matchers: ["alertname=none"] });
    await done("POST", "/v1/data-receiver/events", {
      events: [
        {
          name: "disk full",
          timestamp: String(Date.now()),
          dimensions,
          severity: "SEVERITY_ERROR",
          status: "STATUS_OPEN",
        },
      ],
    });
    for (;;) {
      if (outcomes(await explainAll())[0] === "d told NOTIFIED") break;
      await sleep(50);
    }
  });

  test("those that notified come first, then those that wait, then those that do not match, each as it explains itself", async () => {
    const found = await explainAll();
    expect(outcomes(found)).toEqual([
      "d told NOTIFIED",
      "c late WAITING",
      "b fans NOT_MATCHED",
      "e own NOT_MATCHED",
      "a off RULE_DISABLED",
    ]);
    expect(found).toMatchObject({ totalCount: "5", unexaminedCount: "0" });
    expect(found.outcomes).toContainEqual({ outcome: "NOT_MATCHED", count: "2" });
    for (const { rule: name, outcome, steps } of found.rules) {
      const alone = await done("POST", `/v1/notification/rules/${encodeURIComponent(name)}:explain`, {
        occurrenceId: id,
      });
      expect([name, alone.outcome, alone.steps]).toEqual([name, outcome, steps]);
    }
    const [told, late] = found.rules;
    expect(told.deliveries).toMatchObject([
      { destination: "ops", status: "SENT", tries: [{ reason: "sent", answer: expect.stringContaining("200") }] },
    ]);
    // biome-ignore lint/suspicious/noExplicitAny: JSON of several shapes
    expect(late.deliveries.map(({ destination }: any) => destination).sort()).toEqual(["ops", "pager"]);
  });

  test("what waits for a destination that is paused says so, and until when", async () => {
    const sql = server.database.sql;
    const untilMs = Date.now() + 300_000;
    await sql`
      insert into destination_states (tenant_id, destination_name, failures, opened, open_until_ms, probe_until_ms,
        allowed_ms, minute_ms, minute_count, summary_ms)
      values (${other.id}, 'pager', 9, 1, ${BigInt(untilMs)}, 0, 0, 0, 0, 0)`;
    const { rules } = await explainAll();
    const late = rules.find(({ rule: name }: { rule: string }) => name === "c late");
    expect(late.steps.filter(({ step }: Step) => step === "destination")).toMatchObject([
      {
        result: "waiting",
        reason: 'destination "pager" is paused: it failed again and again',
        untilTime: new Date(untilMs).toISOString(),
      },
    ]);
  });

  test("the answer is cut with a count, and of many rules the first thousand are looked at", async () => {
    expect(outcomes(await explainAll({ limit: 2 }))).toEqual(["d told NOTIFIED", "c late WAITING"]);
    await server.database.sql`
      insert into rules (tenant_id, name, description, enabled, message, repeat, repeat_interval_sec, delay_sec, send_updates,
        mute_during_maintenance, tags, created_ms)
      select ${other.id}, '0 ' || n, '', true, '', false, 0, 0, false, false, '[]', 0 from generate_series(1, 1000) as n`;
    const found = await explainAll({ limit: 3 });
    // The two that have to do with it, beside the thousand that come first by name.
    expect(outcomes(found).slice(0, 2)).toEqual(["d told NOTIFIED", "c late WAITING"]);
    expect(found).toMatchObject({ totalCount: "1005", unexaminedCount: "3" });
    expect(found.rules).toHaveLength(3);
  });

  test("an occurrence that is unknown, and what is none, are not found", async () => {
    for (const text of ["none", id.replace(":1", ":2"), "x:1"])
      expect(await own("POST", `/v1/notification/occurrences/${text}:explain`, {})).toMatchObject({
        status: 404,
        body: { code: 5, message: `no occurrence found for "${text}"` },
      });
  });
});
