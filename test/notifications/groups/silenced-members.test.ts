import { toJson } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { readConfig } from "../../../src/config/settings.ts";
import type { QuotaBounds } from "../../../src/db/admission-quota.ts";
import { keepPartitions } from "../../../src/db/partitions.ts";
import { transaction } from "../../../src/db/transaction.ts";
import { ruleEngine } from "../../../src/notifications/deciding/engine.ts";
import { sent } from "../../../src/notifications/kinds/attempt-outcome.ts";
import { compose } from "../../../src/notifications/kinds/kinds.ts";
import { historyPartitions } from "../../../src/notifications/queue/history.ts";
import { announceSilences, createSilence, expireSilence } from "../../../src/notifications/silences/silences.ts";
import { testDatabase } from "../../support/database.ts";
import { testTenant } from "../../support/tenant.ts";
import { dispatchOnce } from "../dispatch.ts";
import { site } from "../kinds.ts";
import { report, ruleTenant } from "../rule-tenant.ts";

const { sql, pool } = await testDatabase();
const place = await site();
afterAll(() => place[Symbol.asyncDispose]());
const beginMs = Date.now();
await keepPartitions(sql, historyPartitions(readConfig({})), beginMs);
const [OPEN, CLOSED] = [1, 3];

const url = "http://127.0.0.1/";
const template =
  '{"text": "{{#ended}}Resolved: {{/ended}}{{headline}}", "clear": {{clear}}, "count": {{count}}, "silenced": {{silenced}}, "firing": [{{#firing}}{{labels.alertname}}{{^last}},{{/last}}{{/firing}}]}';
const destinations: Record<string, Record<string, object>> = {
  belfry: { webhook: { url } },
  alertmanager: { webhook: { url, format: "WEBHOOK_FORMAT_ALERTMANAGER" } },
  template: { webhook: { url, format: "WEBHOOK_FORMAT_TEMPLATE", body: template } },
  pager: { incidentPaging: {} },
  tickets: { itsm: { baseUrl: url } },
  chat: { teamChat: { channel: "ops" } },
  office: { officeChat: {} },
  mail: { email: { to: "ops@example.com" } },
  event: {
    event: { nameTemplate: "n", typeTemplate: "t", summaryTemplate: "{{{headline}}}", severity: "SEVERITY_ERROR" },
  },
};
const names = Object.keys(destinations);

/** A rule that notifies a destination of each kind of a, b and c in one group, and its clock in seconds. */
async function kindsPlace() {
  const { id: tenantId } = await testTenant(sql);
  let nowMs = beginMs;
  const engine = ruleEngine(
    sql,
    () => undefined,
    () => nowMs,
  );
  const tenant = ruleTenant(sql, engine, tenantId);
  await tenant.trigger("all", { greaterAndEquals: { field: "severity", value: { numberVal: 0 } } });
  for (const name of names) await tenant.destination(name, destinations[name]);
  const grouping = { by: ["source"], waitSec: 0, intervalSec: 10 };
  await tenant.rule({ name: "r", triggers: ["all"], destinations: names, sendUpdates: true, grouping });
  return {
    tenantId,
    at(sec: number) {
      nowMs = beginMs + sec * 1000;
      return nowMs;
    },
    async put(status: number, ...alerts: string[]) {
      await tenant.put(nowMs, ...alerts.map((name) => report(nowMs, { name, status })));
      await tenant.groups(nowMs);
    },
    async silence(name: string) {
      const wanted = {
        startsMs: undefined,
        endsMs: nowMs + 3_600_000,
        ruleNames: [],
        destinationNames: [],
        createdBy: "",
      };
      const author = { clientId: "", clientName: "", keyPrefix: "" };
      const write = { author, nowMs, bounds: { resourceBytesMax: 1e9 } as QuotaBounds, at: "" };
      return await transaction(sql, async (tx) => {
        const all = { ...wanted, matchers: [`alertname=${name}`], comment: "c" };
        const { silence, changed } = await createSilence(tx, tenantId, all, write);
        await announceSilences(tx, tenantId, changed);
        return silence.id;
      });
    },
    expire: (id: string) =>
      transaction(sql, async (tx) =>
        announceSilences(tx, tenantId, (await expireSilence(tx, tenantId, id, nowMs)).changed),
      ),
    /** Flushes and sends what is due; returns what each destination was sent, as people read it. */
    async flushed() {
      await tenant.groups(nowMs);
      const told = new Map<string, { subject: string; body: string; clear: boolean; firing: number }>();
      const results = await dispatchOnce(tenantId, nowMs, {
        pool,
        world: place.world,
        recheck: engine.recheck,
        async send({ type, notification, destinationKey, state }) {
          const name = destinationKey.slice(tenantId.length + 1);
          const { clear, group } = notification;
          expect(toJson(DestinationTypeSchema, type)).toMatchObject({
            [Object.keys(destinations[name] ?? {})[0] ?? ""]: {},
          });
          told.set(name, { ...(await compose(type, notification, place.world)), clear, firing: group?.firing ?? -1 });
          return sent("taken", state);
        },
      });
      return { told, results };
    },
  };
}

test("while a silenced member that was sent fires, the others' end is no end at any kind, and it is sent as firing after the silence", async () => {
  const { at, put, silence, expire, flushed } = await kindsPlace();
  at(0);
  await put(OPEN, "a", "b", "c");
  const first = await flushed();
  expect([...first.told.keys()].sort()).toEqual([...names].sort());

  at(2);
  const id = await silence("c");
  await put(CLOSED, "a", "b");
  at(10);
  const { told, results } = await flushed();
  expect([...told.keys()].sort()).toEqual(names.filter((name) => name !== "pager").sort());
  expect([...told.values()].every(({ clear, firing }) => !clear && firing === 0)).toBe(true);
  const line = "2 resolved: source=web-1; 1 silenced alert still fires";
  const title = "Resolved: 2 alerts (source=web-1); 1 silenced alert still fires";
  const body = (name: string) => told.get(name)?.body ?? "";
  const belfry = JSON.parse(body("belfry"));
  expect(belfry).toMatchObject({ clear: false, occasion: "members", count: 2, silenced: 1, event: null });
  expect(belfry.message).toBe(`${title}\nRESOLVED web-1: a\nRESOLVED web-1: b`);
  expect(JSON.parse(body("alertmanager"))).toMatchObject({
    status: "firing",
    alerts: [{ status: "resolved" }, { status: "resolved" }],
  });
  expect(JSON.parse(body("template"))).toEqual({
    text: `Resolved: ${line}`,
    clear: false,
    count: 2,
    silenced: 1,
    firing: [],
  });
  expect(told.get("tickets")?.subject).toBe(title);
  expect(told.get("office")?.subject).toBe(title);
  expect(told.get("mail")?.subject).toBe(title);
  expect(body("chat").split("\n", 1)).toEqual([title]);
  expect(body("event")).toBe(line);
  expect(results.filter(({ row }) => row.destinationName === "pager")).toMatchObject([
    { status: "CANCELLED", error: "silenced alerts of its group still fire, so the incident goes on" },
  ]);

  at(20);
  expect((await flushed()).told.size).toBe(0);
  at(24);
  await expire(id);
  at(30);
  const again = await flushed();
  expect([...again.told.keys()].sort()).toEqual([...names].sort());
  expect([...again.told.values()].every(({ clear, firing }) => !clear && firing === 1)).toBe(true);

  at(32);
  await put(CLOSED, "c");
  at(40);
  const ended = await flushed();
  expect([...ended.told.keys()].sort()).toEqual([...names].sort());
  expect([...ended.told.values()].every(({ clear }) => clear)).toBe(true);
});

test("a silenced member that ends is an end to all who were sent that it fires", async () => {
  const { at, put, silence, flushed } = await kindsPlace();
  at(0);
  await put(OPEN, "a", "b");
  await flushed();
  at(2);
  await silence("b");
  await put(CLOSED, "a");
  at(10);
  expect((await flushed()).told.size).toBe(names.length - 1);
  at(12);
  await put(CLOSED, "b");
  at(20);
  const { told } = await flushed();
  expect([...told.keys()].sort()).toEqual([...names].sort());
  expect([...told.values()].every(({ clear }) => clear)).toBe(true);
});
