import { randomUUID } from "node:crypto";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { deleteOldNotes } from "../../src/notifications/queue/history.ts";
import { openLog } from "../../src/rpc/log.ts";
import { type Server, startServer } from "../../src/server.ts";
import { consumed } from "../support/consumed.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { httpReceiver, mailReceiver } from "../support/receivers.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const receiver = await httpReceiver();
const mails = await mailReceiver();
afterAll(() => Promise.all([receiver[Symbol.asyncDispose](), mails[Symbol.asyncDispose]()]));
const database = await testDatabase();
const { sql } = database;
const start = () =>
  startServer(
    readConfig({
      DATABASE_URL: database.url,
      BELFRY_DATA_DIR: temporaryDir(),
      BELFRY_PORT: "0",
      BELFRY_PLAINTEXT: "1",
      BELFRY_SHUTDOWN_TIMEOUT: "500ms",
      BELFRY_MASTER_KEYS: masterKeys,
      BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
      BELFRY_INCIDENT_PAGING_URL: receiver.url,
      BELFRY_TEAM_CHAT_URL: `${receiver.url}/chat`,
      BELFRY_SMTP_URL: `smtp://127.0.0.1:${mails.port}?tls.rejectUnauthorized=false`,
      BELFRY_SMTP_SENDER: "belfry@example.com",
    }),
    openLog("silent"),
  );
let server: Server = await start();
afterAll(() => server.stop());

interface Call {
  readonly path: string;
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: the bodies of several products
  readonly body: any;
}
const calls = (): Call[] =>
  receiver.received.map(({ path, method, body }) => ({ path, method, body: body === "" ? {} : JSON.parse(body) }));
const actions = () => calls().map(({ body }) => body.event_action);

beforeEach(() => {
  receiver.received.length = 0;
  mails.mails.length = 0;
  receiver.answer(({ path, method }, response) => {
    const number = receiver.received.length;
    const isRecord = path.startsWith("/api/now");
    const result = method === "GET" ? [] : { sys_id: `sys-${number}`, number: `INC${number}` };
    const body = isRecord ? { result } : { ok: true, ts: `${number}.0`, channel: "C1", status: "success" };
    response.writeHead(isRecord && method === "POST" ? 201 : 200).end(JSON.stringify(body));
  });
});

interface RuleOptions {
  name?: string;
  sendUpdates?: boolean;
  /** It matches the alerts whose names begin so. */
  begin?: string;
}

/** Safely in the past for a server whose clock is the database's. */
const justEnded = () => new Date(Date.now() - 1000).toISOString();
const poll = { interval: 20 };

/** A tenant with a destination that takes this many notifications a minute. */
async function place(type: object, maxPerMinute = 1) {
  const tenant = await testTenant(sql);
  async function ok(method: string, path: string, body?: object) {
    const answer = await v1(server.url, tenant.headers)(method, path, body);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body;
  }
  await ok("POST", "/v1/notification/destinations", { name: "d", type, maxPerMinute });
  const count = async (condition = sql`true`) =>
    (await sql`select 1 as waiting from due_deliveries where tenant_id = ${tenant.id} and ${condition}`).count;
  const wake = () => sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id} and kind = 'deliveries'`;

  return {
    tenant,
    ok,
    count,
    async rule({ name = "r", sendUpdates = true, begin = "" }: RuleOptions = {}) {
      const clause = { contains: { field: "name", value: begin === "" ? "-" : begin } };
      await ok("POST", "/v1/notification/triggers", { name, type: { event: { query: { clause } } } });
      const rule = { name, enabled: true, sendUpdates, triggerNames: [name], destinationNames: ["d"] };
      await ok("POST", "/v1/notification/rules", rule);
    },
    /**
     * Reports alerts in one request; resolves when rules have decided on them, and where `waiting` deliveries are to wait in all, when they
     * do. Only where the destination's minute is used up none of them may go at once.
     */
    async alerts(names: readonly string[], state: "firing" | "ended", waiting?: number) {
      const time = (ms: number) => new Date(Date.now() + ms).toISOString();
      const sent = names.map((alertname) => ({
        labels: { alertname, instance: "web-1", severity: "critical" },
        ...(state === "firing" && { startsAt: time(0) }),
        endsAt: time(state === "ended" ? -1000 : 3_600_000),
      }));
      await ok("POST", "/api/v2/alerts", sent);
      await consumed(sql, tenant.id);
      if (waiting !== undefined) await expect.poll(() => count(), poll).toBe(waiting);
    },
    /** Begins the destination's next minute. */
    async nextMinute() {
      const held = async () => {
        const due = await count(sql`due_ms <= ${BigInt(Date.now())} and lease_until_ms <= ${BigInt(Date.now())}`);
        const [state] = await sql<{ summary_ms: string }[]>`
          select summary_ms from destination_states where tenant_id = ${tenant.id}`;
        return due === 0 || Number(state?.summary_ms) > 0;
      };
      await expect.poll(held, poll).toBe(true);
      await sql`
        update destination_states set minute_ms = minute_ms - 60000,
          summary_ms = case when summary_ms = 0 then 0 else summary_ms - 60000 end
        where tenant_id = ${tenant.id}`;
      await wake();
    },
    /** Lets what is held be looked at. */
    async lookAgain() {
      await sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id}`;
      await wake();
    },
    history: () => sql<{ id: string; status: string; error: string; occasion: string }[]>`
      select id, status, error, occasion from delivery_history where tenant_id = ${tenant.id} order by created_ms, id`,
  };
}
type Place = Awaited<ReturnType<typeof place>>;

const many = (count: number, begin = "alert") => Array.from({ length: count }, (_, i) => `${begin}-${i}`);
const paging = { incidentPaging: { integrationKey: "0123456789abcdef0123456789abcdef" } };

/** Fires alerts: the first goes by itself, the others in the summary of the next minute. Returns what both were sent as. */
async function stormed({ alerts, nextMinute }: Place, names: readonly string[]) {
  await alerts(names, "firing", names.length - 1);
  await expect.poll(() => calls().length, poll).toBe(1);
  await nextMinute();
  await expect.poll(() => calls().length, poll).toBe(2);
  const [single, summary] = calls().map(({ body }) => body);
  return { single, summary };
}

async function restart() {
  await server.stop();
  server = await start();
}

describe("alerts at once at a pager that takes one notification a minute", () => {
  test("of 50 the one that was sent by itself and the summary of the others are both ended", async () => {
    const site = await place(paging);
    await site.rule();
    const { single, summary } = await stormed(site, many(50));
    await expect.poll(() => site.count(), poll).toBe(0);
    await site.alerts(many(50), "ended", 50);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(3);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(4);
    await expect.poll(() => site.count(), poll).toBe(0);
    expect(actions()).toEqual(["trigger", "trigger", "resolve", "resolve"]);
    const ended = calls()
      .slice(2)
      .map(({ body }) => body.dedup_key);
    expect(ended.toSorted()).toEqual([single.dedup_key, summary.dedup_key].toSorted());
    expect((await site.history()).filter(({ status }) => status === "CANCELLED")).toEqual([]);
  }, 60_000);

  test("a summary names its members, and links to a list of them", async () => {
    const site = await place(paging);
    await site.rule();
    const { single, summary } = await stormed(site, many(130));
    const names: string[] = summary.payload.custom_details.fields.names;
    expect(summary.payload.custom_details.event).toBe("notifications");
    expect(new Set(names).size).toBe(100);
    expect(names).not.toContain(single.payload.custom_details.event);
    expect(summary.payload.summary).toMatch(/^CRITICAL: 129 notifications: (?:alert-\d+, ){20}/);
    expect(summary.payload.custom_details.body).toContain(`${names.join(", ")} and 29 more`);
    const [{ href, text }] = summary.links;
    expect(text).toBe("Show notifications");
    const [, id = ""] = /\/console\/#\/deliveries\?summary=([0-9a-f-]{36})$/.exec(href) ?? [];
    expect(summary.dedup_key).toBe(`summary:${id}`);
    await expect.poll(() => site.count(), poll).toBe(0);
    const list = await site.ok("GET", `/v1/notification/deliveries?summary=${id}&pageSize=1000`);
    expect(list.totalCount).toBe("129");
    const statuses = Map.groupBy(list.deliveries as { status: string; id: string }[], ({ status }) => status);
    expect(statuses.get("SENT")?.map((each) => each.id)).toEqual([id]);
    expect(statuses.get("SUMMARISED")).toHaveLength(128);
    const pages = await site.ok("GET", `/v1/notification/deliveries?summary=${id}&pageSize=100`);
    expect([pages.deliveries.length, pages.nextPageToken === ""]).toEqual([100, false]);
    for (const other of [single.dedup_key, randomUUID(), "x"]) {
      const none = await site.ok("GET", `/v1/notification/deliveries?summary=${encodeURIComponent(other)}`);
      expect(none).toMatchObject({ deliveries: [], totalCount: "0" });
    }
  }, 60_000);

  test("alerts of one name are told apart by their entities", async () => {
    const site = await place(paging);
    await site.rule({ begin: "cpu" });
    const event = (host: number) => ({
      name: "cpu",
      timestamp: String(Date.now()),
      dimensions: { source: `h${host}` },
    });
    const events = [0, 1, 2].map((host) => ({ ...event(host), severity: "SEVERITY_ERROR", status: "STATUS_OPEN" }));
    await site.ok("POST", "/v1/data-receiver/events", { events });
    await expect.poll(() => calls().length, poll).toBe(1);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(2);
    expect(calls()[1]?.body.payload.summary).toMatch(/^ERROR: 2 notifications: cpu \(.*h\d.*\), cpu \(.*h\d.*\)$/);
  }, 60_000);

  test("a summary ends with the last of its matches, and not before, also of a server that was restarted", async () => {
    const site = await place(paging);
    await site.rule();
    const { single, summary } = await stormed(site, many(12));
    await expect.poll(() => site.count(), poll).toBe(0);
    const own: string = single.payload.custom_details.event;
    const [last = "", ...others] = many(12).filter((name) => name !== own);
    await site.alerts(others, "ended", others.length);
    await restart();
    await site.nextMinute();
    // The end of the summary waits.
    await expect.poll(() => site.count(), poll).toBe(1);
    await site.lookAgain();
    await expect.poll(() => site.count(sql`due_ms > ${BigInt(Date.now() + 60_000)}`), poll).toBe(1);
    expect(actions()).toEqual(["trigger", "trigger"]);
    await restart();
    await site.ok("POST", "/api/v2/alerts", [
      { labels: { alertname: last, instance: "web-1", severity: "critical" }, endsAt: justEnded() },
    ]);
    await expect.poll(() => calls().length, poll).toBe(3);
    expect(calls()[2]?.body).toMatchObject({ event_action: "resolve", dedup_key: summary.dedup_key });
    await expect.poll(() => site.count(), poll).toBe(0);
    // What was sent by itself is still open.
    await site.nextMinute();
    await site.ok("POST", "/api/v2/alerts", [
      { labels: { alertname: own, instance: "web-1", severity: "critical" }, endsAt: justEnded() },
    ]);
    await expect.poll(() => calls().length, poll).toBe(4);
    expect(calls()[3]?.body).toMatchObject({ event_action: "resolve", dedup_key: single.dedup_key });
  }, 60_000);

  test("both are ended after any time, since what was sent of a match that stands is not forgotten", async () => {
    const site = await place(paging);
    await site.rule();
    const { single, summary } = await stormed(site, many(5));
    await expect.poll(() => site.count(), poll).toBe(0);
    const days = 86_400_000;
    const notes = () => sql`
      select subject from delivery_threads where tenant_id = ${site.tenant.id}
      union all select delivery_id::text::bytea from summary_members where tenant_id = ${site.tenant.id}`;
    const bounds = { nowMs: Date.now() + 90 * days, retentionMs: 30 * days, recordMs: 33 * days };
    const forget = () => deleteOldNotes(sql, site.tenant.id, bounds);
    await forget();
    expect(await notes()).toHaveLength(2 + 4);
    await site.alerts(many(5), "ended", 5);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(3);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(4);
    const ends = calls()
      .slice(2)
      .map(({ body }) => body.dedup_key);
    expect(ends.toSorted()).toEqual([single.dedup_key, summary.dedup_key].toSorted());
    await expect.poll(() => site.count(), poll).toBe(0);
    await forget();
    await forget();
    expect(await notes()).toHaveLength(0);
  }, 60_000);

  test("two summaries end each with its own matches", async () => {
    const site = await place(paging);
    await site.rule();
    const { single, summary } = await stormed(site, many(6, "early"));
    await expect.poll(() => site.count(), poll).toBe(0);
    await site.alerts(many(5, "late"), "firing", 5);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(3);
    const later = calls()[2]?.body;
    expect(later.dedup_key).toMatch(/^summary:/);
    await expect.poll(() => site.count(), poll).toBe(0);
    await site.alerts(many(5, "late"), "ended", 5);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(4);
    expect(calls()[3]?.body).toMatchObject({ event_action: "resolve", dedup_key: later.dedup_key });
    await expect.poll(() => site.count(), poll).toBe(0);
    await site.alerts(many(6, "early"), "ended", 6);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(5);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(6);
    const ends = calls()
      .slice(4)
      .map(({ body }) => body.dedup_key);
    expect(ends.toSorted()).toEqual([single.dedup_key, summary.dedup_key].toSorted());
  }, 60_000);

  test("what fires again after its end is no member of the summary any more", async () => {
    const site = await place(paging);
    await site.rule();
    const { single, summary } = await stormed(site, many(3));
    await expect.poll(() => site.count(), poll).toBe(0);
    const own: string = single.payload.custom_details.event;
    const [again = "", other = ""] = many(3).filter((name) => name !== own);
    await site.alerts([again], "ended", 1);
    await site.nextMinute();
    await expect.poll(() => site.count(sql`due_ms > ${BigInt(Date.now() + 60_000)}`), poll).toBe(1);
    await site.alerts([again], "firing", 1);
    await expect.poll(() => calls().length, poll).toBe(3);
    expect(calls()[2]?.body.payload.custom_details.event).toBe(again);
    await site.nextMinute();
    await site.ok("POST", "/api/v2/alerts", [
      { labels: { alertname: other, instance: "web-1", severity: "critical" }, endsAt: justEnded() },
    ]);
    await expect.poll(() => calls().length, poll).toBe(4);
    expect(calls()[3]?.body).toMatchObject({ event_action: "resolve", dedup_key: summary.dedup_key });
  }, 60_000);

  test("without sendUpdates nothing ends; beside a rule with it the summary is open as long as a match of either stands", async () => {
    const site = await place(paging);
    await site.rule({ name: "silent", sendUpdates: false, begin: "silent" });
    await site.rule({ name: "told", begin: "told" });
    await site.alerts(["silent-0"], "firing", 0);
    await site.alerts(["silent-1", "silent-2", "told-1", "told-2"], "firing", 4);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(2);
    const summary = calls()[1]?.body;
    await expect.poll(() => site.count(), poll).toBe(0);
    await site.nextMinute();
    await site.ok("POST", "/api/v2/alerts", [
      ...["told-1", "told-2"].map((alertname) => ({
        labels: { alertname, instance: "web-1", severity: "critical" },
        endsAt: justEnded(),
      })),
    ]);
    const held = sql`due_ms > ${BigInt(Date.now() + 60_000)}`;
    await expect.poll(() => site.count(held), poll).toBe(1);
    const before = calls().length;
    await site.ok("PUT", "/v1/notification/rules/silent", {
      name: "silent",
      enabled: false,
      triggerNames: ["silent"],
      destinationNames: ["d"],
    });
    await site.nextMinute();
    await site.lookAgain();
    await expect
      .poll(
        () =>
          calls()
            .filter(({ body }) => body.dedup_key === summary.dedup_key)
            .at(-1)?.body.event_action,
        poll,
      )
      .toBe("resolve");
    expect(calls().length).toBeGreaterThan(before);
  }, 60_000);

  test("ends of what was sent by itself are never summed up: each is sent in its turn", async () => {
    const site = await place(paging, 3);
    await site.rule();
    const names = many(6);
    await site.alerts(names.slice(0, 3), "firing", 0);
    await site.nextMinute();
    await site.alerts(names.slice(3), "firing", 0);
    expect(actions()).toEqual(Array(6).fill("trigger"));
    const keys = calls().map(({ body }) => body.dedup_key);
    await site.alerts(names, "ended", 6);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(9);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(12);
    expect(actions().slice(6)).toEqual(Array(6).fill("resolve"));
    expect(
      calls()
        .slice(6)
        .map(({ body }) => body.dedup_key)
        .toSorted(),
    ).toEqual(keys.toSorted());
  }, 60_000);

  test("a summary whose server died while it was sent is ended, even if nothing of it is sent again", async () => {
    const site = await place(paging);
    await site.rule();
    await site.alerts(many(10), "firing", 9);
    await expect.poll(() => calls().length, poll).toBe(1);
    receiver.answer(() => undefined);
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(2);
    const summary = calls()[1]?.body;
    // As after kill -9: nobody renews the leases, and nothing is recorded by them.
    await sql`update due_deliveries set fence = fence + 1 where tenant_id = ${site.tenant.id}`;
    receiver.answer((_request, response) => void response.writeHead(202).end('{"status":"success"}'));
    await site.alerts(many(10), "ended", 19);
    await sql`update due_deliveries set lease_until_ms = 1 where tenant_id = ${site.tenant.id} and lease_until_ms > 0`;
    for (let minute = 0; minute < 3; minute++) {
      await site.nextMinute();
      const sent = 3 + minute;
      if (minute < 2) await expect.poll(() => calls().length, poll).toBe(sent);
    }
    await expect.poll(() => site.count(), poll).toBe(0);
    const ends = calls().slice(2);
    expect(ends.map(({ body }) => body.event_action)).toEqual(["resolve", "resolve"]);
    expect(ends.map(({ body }) => body.dedup_key)).toContain(summary.dedup_key);
  }, 60_000);

  test("a summary that was refused is tried again under its id, and has no end when it never went out", async () => {
    const site = await place(paging);
    await site.rule();
    await site.alerts(many(10), "firing", 9);
    await expect.poll(() => calls().length, poll).toBe(1);
    receiver.answer((_request, response) => void response.writeHead(503).end());
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(2);
    await expect.poll(() => site.count(sql`tries = 1`), poll).toBe(1);
    await site.lookAgain();
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(3);
    expect(calls()[2]?.body.dedup_key).toMatch(/^summary:/);
    expect(calls()[2]?.body.dedup_key).toBe(calls()[1]?.body.dedup_key);
    await expect.poll(() => site.count(sql`lease_until_ms = 0`), poll).toBe(9);
    receiver.answer((_request, response) => void response.writeHead(202).end('{"status":"success"}'));
    await site.alerts(many(10), "ended", 19);
    await site.lookAgain();
    await site.nextMinute();
    await expect.poll(() => calls().length, poll).toBe(4);
    await expect.poll(() => site.count(), poll).toBe(0);
    expect(calls()[3]?.body).toMatchObject({ event_action: "resolve", dedup_key: calls()[0]?.body.dedup_key });
  }, 60_000);
});

/** A destination of a kind, and what its receiver holds of summaries: how often one began, and how often one ended. */
const kinds: Record<string, { type: object; seen(): { begun: number; ended: number; ofOne: boolean } }> = {
  webhook: {
    type: { webhook: { url: `${receiver.url}/hook` } },
    seen() {
      const all = calls().filter(({ body }) => body.event?.type === "summary");
      const [begun, ended] = [all.filter(({ body }) => !body.clear), all.filter(({ body }) => body.clear)];
      return { begun: begun.length, ended: ended.length, ofOne: ended[0]?.body.event.fields.count === 3 };
    },
  },
  teamChat: {
    type: { teamChat: { channel: "ops", token: "xoxb-1" } },
    seen() {
      const all = calls()
        .map(({ path, body }, i) => ({ path, text: body.attachments[0].text as string, body, ts: `${i + 1}.0` }))
        .filter(({ path }) => path.endsWith("chat.postMessage"));
      const begun = all.filter(({ text }) => /^CRITICAL: 3 notifications: alert/.test(text));
      const ended = all.filter(({ text }) => /^Resolved: CRITICAL: 3 notifications: alert/.test(text));
      return { begun: begun.length, ended: ended.length, ofOne: ended[0]?.body.thread_ts === begun[0]?.ts };
    },
  },
  officeChat: {
    type: { officeChat: { webhookUrl: `${receiver.url}/card`, text: "{{{event.name}}}" } },
    seen() {
      const cards = calls().map(({ body }) => JSON.stringify(body));
      const all = cards.filter((card) => card.includes("3 notifications: alert-"));
      const ended = all.filter((card) => card.includes("Resolved: 3 notifications"));
      const ofOne = ended[0]?.includes("Show notifications") === true;
      return { begun: all.length - ended.length, ended: ended.length, ofOne };
    },
  },
  itsm: {
    type: { itsm: { baseUrl: receiver.url, shortDescription: "x", basic: { username: "u", password: "secret" } } },
    seen() {
      const numbered = calls().map((call, i) => ({ ...call, id: `sys-${i + 1}` }));
      const begun = numbered.filter(({ method, body }) => method === "POST" && /^summary/.test(body.correlation_id));
      const ended = numbered.filter(
        ({ method, path, body }) =>
          method === "PATCH" && body.state === "6" && begun.some(({ id }) => path.endsWith(id)),
      );
      return { begun: begun.length, ended: ended.length, ofOne: begun.length === 1 };
    },
  },
  email: {
    type: { email: { to: "ops@example.com" } },
    seen() {
      const all = mails.mails.map(({ raw }) => raw).filter((raw) => /^Subject:.*3 notifications/m.test(raw));
      const ended = all.filter((raw) => /^Subject: Resolved/m.test(raw));
      const ofOne = /^In-Reply-To: /m.test(ended[0] ?? "");
      return { begun: all.length - ended.length, ended: ended.length, ofOne };
    },
  },
};

test.each(Object.entries(kinds))(
  "at %s, too, a summary ends with the last of its matches",
  { timeout: 60_000 },
  async (_kind, { type, seen }) => {
    const site = await place(type);
    await site.rule();
    /** Lets minutes go by until nothing waits but an end whose matches stand. */
    const sent = async (heldMax: number) => {
      const left = async () => {
        await site.nextMinute();
        return [await site.count(sql`due_ms <= ${BigInt(Date.now() + 60_000)}`), (await site.count()) <= heldMax];
      };
      await expect.poll(left, { ...poll, interval: 200 }).toEqual([0, true]);
    };
    await site.alerts(many(4), "firing", 3);
    await sent(0);
    expect(seen()).toMatchObject({ begun: 1, ended: 0 });
    // The last look at what is left may have begun a minute in which nothing has gone yet: an end may go at once.
    await site.alerts(many(2), "ended");
    await sent(1);
    expect(seen()).toMatchObject({ begun: 1, ended: 0 });
    await site.alerts(many(4), "ended");
    await sent(0);
    expect(seen()).toEqual({ begun: 1, ended: 1, ofOne: true });
  },
);

test("events that are made of two summaries end each with its own", async () => {
  const texts = { nameTemplate: "made of {{{event.name}}}", typeTemplate: "t", summaryTemplate: "s" };
  const site = await place({ event: { ...texts, severity: "SEVERITY_INFO" } });
  await site.rule({ begin: "alert" });
  const made = async () =>
    (
      await sql<{ status: number }[]>`
      select o.status from occurrences o join events e on e.tenant_id = o.tenant_id and e.id = o.event_id
      where o.tenant_id = ${site.tenant.id} and e.name = 'made of notifications' order by o.start_ms, e.id`
    ).map(({ status }) => status);
  await site.alerts(many(4), "firing", 3);
  await site.nextMinute();
  await expect.poll(made, poll).toEqual([1]);
  await site.alerts(many(4, "alert-b"), "firing", 4);
  await site.nextMinute();
  await expect.poll(made, poll).toEqual([1, 1]);
  await expect.poll(() => site.count(), poll).toBe(0);
  await site.alerts(many(4, "alert-b"), "ended", 4);
  await site.nextMinute();
  await expect.poll(async () => (await made()).filter((status) => status === 1).length, poll).toBe(1);
}, 60_000);
