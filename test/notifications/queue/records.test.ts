import { afterAll, expect, test } from "vitest";
import { readConfig } from "../../../src/config/settings.ts";
import { keepPartitions } from "../../../src/db/partitions.ts";
import { transaction } from "../../../src/db/transaction.ts";
import { releaseEnds } from "../../../src/notifications/deciding/enqueue.ts";
import { openSendEnvironment } from "../../../src/notifications/kinds/send-environment.ts";
import { historyPartitions } from "../../../src/notifications/queue/history.ts";
import { raiseRulesVersion } from "../../../src/notifications/silences/rules-version.ts";
import { testDatabase } from "../../support/database.ts";
import { onOnePostgres } from "../../support/one-postgres.ts";
import { type Answerer, httpReceiver } from "../../support/receivers.ts";
import { testTenant } from "../../support/tenant.ts";
import { dispatchOnce } from "../dispatch.ts";
import { report, ruleTenant } from "../rule-tenant.ts";

/*
 * What pagers, ticket systems and chats keep of an occurrence, over all notifications of all rules: where one record ends and the
 * next begins.
 */

const { sql, pool } = await testDatabase();
const t0 = Date.now();
const sec = 1000;
await keepPartitions(sql, historyPartitions(readConfig({})), t0);
const receiver = await httpReceiver();
const config = readConfig({
  BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
  BELFRY_INCIDENT_PAGING_URL: receiver.url,
  BELFRY_TEAM_CHAT_URL: receiver.url,
});
const world = openSendEnvironment(config, {
  ownUrl: receiver.url,
  nowMs: Date.now,
  createEvent: async () => undefined,
});
afterAll(async () => {
  await world.outbound.close();
  await receiver[Symbol.asyncDispose]();
});

type Row = Record<string, string>;
interface Rule {
  trigger: "all" | "critical";
  sendUpdates?: boolean;
  delaySec?: number;
}

const severe = { greaterAndEquals: { field: "severity", value: { numberVal: 5 } } };
const types = {
  pager: { incidentPaging: { integrationKey: "R0utingKeyOf32Characters00000000" } },
  tickets: { itsm: { baseUrl: receiver.url, basic: { username: "belfry", password: "secret" } } },
  chat: { teamChat: { channel: "ops", token: "xoxb" } },
  hook: { webhook: { url: `${receiver.url}/hook` } },
};

/** A tenant with one destination and rules that name it, and what its receiver has seen. */
async function site(kind: keyof typeof types, rules: Record<string, Rule>) {
  const { id } = await testTenant(sql);
  const tenant = ruleTenant(sql, undefined, id);
  const incidents: Row[] = [];
  const messages: { threadTs?: string; footer?: string }[] = [];
  const answer: Answerer = ({ method, path, body }, response) => {
    const say = (status: number, what: object) => void response.writeHead(status).end(JSON.stringify(what));
    const sent = body === "" ? {} : JSON.parse(body);
    if (path.startsWith("/hook")) return say(200, {});
    if (path.startsWith("/v2/")) return say(202, { status: "success" });
    if (path === "/chat.update") return say(200, { ok: true });
    if (path.startsWith("/chat")) {
      messages.push({ threadTs: sent.thread_ts, footer: sent.attachments[0].footer });
      return say(200, { ok: true, channel: "C1", ts: `ts${messages.length}` });
    }
    const query = new URL(path, receiver.url).searchParams.get("sysparm_query") ?? "";
    if (method === "GET")
      return say(200, { result: incidents.filter((row) => query.startsWith(`correlation_id=${row.correlation_id}^`)) });
    const row = incidents.find(({ sys_id }) => path.endsWith(`/${sys_id}`));
    if (row !== undefined) return say(200, { result: Object.assign(row, sent) });
    incidents.push({ ...sent, sys_id: `sys${incidents.length + 1}`, number: `INC${incidents.length + 1}` });
    say(201, { result: incidents.at(-1) });
  };
  receiver.answer(answer);
  receiver.received.length = 0;
  await tenant.trigger("all", { greaterAndEquals: { field: "severity", value: { numberVal: 2 } } });
  await tenant.trigger("critical", severe);
  await tenant.destination("d", types[kind]);
  for (const [name, { trigger, ...more }] of Object.entries(rules))
    await tenant.rule({ name, triggers: [trigger], ...more });
  return {
    ...tenant,
    incidents,
    messages,
    /** The actions that a pager got. */
    actions: () => receiver.received.map(({ body }) => JSON.parse(body).event_action as string),
    dispatch: (nowMs: number, recheck = tenant.engine.recheck) =>
      dispatchOnce(id, nowMs, { pool, world, recheck, random: 0.5 }),
    /** The same; `change` happens once, between the verdicts and their record. */
    dispatchBeside(nowMs: number, change: () => Promise<unknown>) {
      let changing: Promise<unknown> | undefined;
      return this.dispatch(nowMs, async (...call) => {
        const verdicts = await tenant.engine.recheck(...call);
        changing ??= change();
        await changing;
        return verdicts;
      });
    },
    /** Reports at a moment, and sends what is due then. */
    async see(afterSec: number, severity: number, status = 1) {
      const nowMs = t0 + afterSec * sec;
      await tenant.put(nowMs, report(nowMs, { severity, status }));
      await this.dispatch(nowMs);
    },
    waiting: () => sql`select occasion from due_deliveries where tenant_id = ${id}`,
  };
}

/** Resolves once a statement waits for a lock. */
async function lockAwaited() {
  const waits = async () =>
    (await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).count;
  await expect.poll(waits).toBeGreaterThan(0);
}

const warnAndPage: Record<string, Rule> = {
  warn: { trigger: "all", sendUpdates: true },
  page: { trigger: "critical", sendUpdates: true },
};

test("a pager resolves when the last match of any rule has ended", async () => {
  const place = await site("pager", warnAndPage);
  await place.see(0, 5);
  expect(place.actions()).toEqual(["trigger", "trigger"]);
  receiver.received.length = 0;
  await place.see(10, 3);
  expect(place.actions()).not.toContain("resolve");
  await place.see(20, 3, 3);
  expect(place.actions()).toEqual(["trigger", "resolve"]);
  expect(await place.waiting()).toEqual([]);
});

test("a pager is resolved by the end of a rule without updates, when another that notified has them", async () => {
  const place = await site("pager", { warn: { trigger: "all" }, page: { trigger: "critical", sendUpdates: true } });
  await place.see(0, 5);
  await place.see(10, 3);
  expect(place.actions()).toEqual(["trigger", "trigger"]);
  await place.see(20, 3, 3);
  expect(place.actions()).toEqual(["trigger", "trigger", "resolve"]);
});

test("no rule with updates: a pager is never resolved", async () => {
  const place = await site("pager", { warn: { trigger: "all" }, page: { trigger: "critical" } });
  await place.see(0, 5);
  await place.see(10, 3);
  await place.see(20, 3, 3);
  expect(place.actions()).toEqual(["trigger", "trigger"]);
});

test("a rule that matches again while its end was held has nothing to end", async () => {
  const place = await site("pager", warnAndPage);
  await place.see(0, 5);
  await place.see(10, 3);
  await place.see(20, 5);
  await place.dispatch(t0 + 400 * sec);
  expect(place.actions()).not.toContain("resolve");
  await place.see(500, 5, 3);
  expect(place.actions().at(-1)).toBe("resolve");
  expect(await place.waiting()).toEqual([]);
});

test("an end goes out at once when the match that it waits for ends while it is judged", async () => {
  const place = await site("pager", warnAndPage);
  await place.see(0, 5);
  await place.see(10, 3);
  const nowMs = t0 + 400 * sec;
  await place.dispatchBeside(nowMs, () => place.put(nowMs, report(nowMs, { severity: 3, status: 3 })));
  expect(place.actions().filter((action) => action === "resolve")).toHaveLength(1);
  expect(await place.waiting()).toEqual([]);
});

onOnePostgres("locks in sight")(
  "an end waits for a change of the rule that holds it, and goes out with its commit",
  async () => {
    const place = await site("pager", warnAndPage);
    await place.see(0, 5);
    await place.see(10, 3);
    const [changed, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const changing = transaction(sql, async (tx) => {
      await changed.promise;
      await tx`update rules set enabled = false where tenant_id = ${place.tenantId} and name = 'warn'`;
      await releaseEnds(tx, place.tenantId, ["d"]);
      released.resolve();
      await lockAwaited();
      await raiseRulesVersion(tx, place.tenantId, { kind: "rule", name: "warn" });
    });
    await place.dispatchBeside(t0 + 400 * sec, async () => {
      changed.resolve();
      await released.promise;
    });
    await changing;
    expect(place.actions().at(-1)).toBe("resolve");
    expect(await place.waiting()).toEqual([]);
  },
);

test("an end that is held holds up nothing, and goes out when the other rule is disabled", async () => {
  const place = await site("pager", warnAndPage);
  await place.see(0, 5);
  await place.see(10, 3);
  await place.rule({ name: "warn", triggers: ["all"], enabled: false });
  await place.dispatch(t0 + 400 * sec);
  expect(place.actions().at(-1)).toBe("resolve");
});

test("every rule's end is sent where each notification stands for itself", async () => {
  const place = await site("hook", warnAndPage);
  await place.see(0, 5);
  await place.see(10, 3);
  const told = () =>
    receiver.received.map(({ body }) => {
      const { rule, clear } = JSON.parse(body);
      return `${rule.name}${clear ? " cleared" : ""}`;
    });
  expect(told()).toContain("page cleared");
  expect(told()).not.toContain("warn cleared");
  await place.see(20, 3, 3);
  expect(told().at(-1)).toBe("warn cleared");
});

test("what matches again after a clear makes a new ticket, which the next clear closes", async () => {
  const place = await site("tickets", { page: { trigger: "critical", sendUpdates: true } });
  await place.see(0, 5);
  await place.see(10, 3);
  await place.see(20, 5);
  expect(place.incidents.map(({ state = "new" }) => state)).toEqual(["6", "new"]);
  const [first, second] = place.incidents.map(({ correlation_id }) => correlation_id);
  expect(second).not.toBe(first);
  await place.see(30, 3);
  expect(place.incidents.map(({ state }) => state)).toEqual(["6", "6"]);
});

test("a ticket of two rules is one, and closed by the last of them", async () => {
  const place = await site("tickets", warnAndPage);
  await place.see(0, 3);
  await place.see(5, 5);
  await place.see(10, 3);
  expect(place.incidents.map(({ state = "new" }) => state)).toEqual(["new"]);
  await place.see(20, 3, 3);
  expect(place.incidents.map(({ state }) => state)).toEqual(["6"]);
});

test("matches that end together close one ticket with one update, and a pager with one resolve", async () => {
  const tickets = await site("tickets", warnAndPage);
  await tickets.see(0, 5);
  receiver.received.length = 0;
  await tickets.see(20, 5, 3);
  expect(receiver.received.map(({ method }) => method)).toEqual(["PATCH"]);
  expect(tickets.incidents.map(({ state }) => state)).toEqual(["6"]);
  expect(await tickets.waiting()).toEqual([]);
  const pager = await site("pager", warnAndPage);
  await pager.see(0, 5);
  await pager.see(20, 5, 3);
  expect(pager.actions()).toEqual(["trigger", "trigger", "resolve"]);
});

test("a clear ends a chat's thread", async () => {
  const place = await site("chat", { page: { trigger: "critical", sendUpdates: true } });
  for (const [afterSec, severity] of [
    [0, 5],
    [10, 3],
    [20, 5],
    [30, 3],
  ] as const)
    await place.see(afterSec, severity);
  expect(place.messages).toEqual([
    {},
    { threadTs: "ts1", footer: "Resolved" },
    {},
    { threadTs: "ts3", footer: "Resolved" },
  ]);
});

test("a chat's thread of two rules goes on until both are over", async () => {
  const place = await site("chat", warnAndPage);
  await place.see(0, 5);
  await place.dispatch(t0 + 3 * sec);
  await place.see(10, 5, 3);
  await place.dispatch(t0 + 13 * sec);
  await place.dispatch(t0 + 15 * sec);
  expect(place.messages.map(({ threadTs }) => threadTs)).toEqual([undefined, "ts1", "ts1", "ts1"]);
});
