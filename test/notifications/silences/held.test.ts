import { expect, test } from "vitest";
import { renewHeld } from "../../../src/notifications/queue/history.ts";
import { silencePlace } from "./place.ts";

const closed = { status: "STATUS_CLOSED" };

test("a first notification is held, and sent once when the silence ends by itself", async () => {
  const { rule, silence, report, until, arrived, inMs, deliveries } = await silencePlace();
  await rule("r");
  const { id } = await silence({ endsAt: inMs(1500) });
  await report("disk");
  const [held] = await until("first HELD");
  expect(held).toMatchObject({ silenceId: id, nextTryTime: expect.any(String) });
  expect(await deliveries("?status=HELD")).toHaveLength(1);
  expect(await deliveries("?status=PENDING")).toHaveLength(0);
  expect(arrived()).toEqual([]);
  await until("first SENT");
  expect(arrived()).toHaveLength(1);
});

test("what is held for longer than deliveries are kept is sent and recorded when the silence ends", async () => {
  const { rule, silence, report, until, arrived, ok, server, tenant } = await silencePlace();
  const { sql } = server.database;
  await rule("r");
  const { id } = await silence();
  await report("disk");
  const [held] = await until("first HELD");
  // As a match and a delivery of 40 days ago, whose day the history no longer has.
  const createdMs = Date.now() - 40 * 86_400_000;
  const time = createdMs.toString(16).padStart(12, "0");
  const old = `${time.slice(0, 8)}-${time.slice(8)}${String(held?.id).slice(13)}`;
  await sql`
    update due_deliveries set id = ${old}, created_ms = ${createdMs} where tenant_id = ${tenant.id} and id = ${String(held?.id)}`;
  await sql`update rule_matches set matched_ms = ${createdMs} where tenant_id = ${tenant.id}`;
  expect(await renewHeld(sql, tenant.id, Date.now())).toBe(false);
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  const [sent] = await until("first SENT");
  expect(arrived()).toHaveLength(1);
  expect(await ok("GET", `/v1/notification/deliveries/${sent?.id}`)).toMatchObject({ delivery: { status: "SENT" } });
});

test("what is held is sent as it is then, when the silence is ended early", async () => {
  const { rule, silence, report, until, arrived, ok } = await silencePlace();
  await rule("r", { sendUpdates: true });
  const { id } = await silence();
  await report("disk");
  await until("first HELD");
  await report("disk", { severity: "SEVERITY_CRITICAL" });
  await report("disk", { severity: "SEVERITY_WARNING" });
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  await until("first SENT");
  expect(arrived()).toMatchObject([{ severity: 3 }]);
});

test("a match that ends while it is held sends nothing", async () => {
  const { rule, silence, report, until, arrived } = await silencePlace();
  await rule("r", { sendUpdates: true });
  await silence();
  await report("disk");
  await until("first HELD");
  await report("disk", closed);
  await until("clear CANCELLED", "first CANCELLED");
  expect(arrived()).toEqual([]);
});

test("an end of what was sent is never held, and updates are one, of what has changed since", async () => {
  const { rule, silence, report, until, arrived, ok } = await silencePlace();
  await rule("r", { sendUpdates: true });
  await report("disk");
  await until("first SENT");
  const { id } = await silence();
  await report("disk", { severity: "SEVERITY_CRITICAL" });
  await until("severity HELD", "first SENT");
  await report("disk", { severity: "SEVERITY_WARNING" });
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  await until("severity SENT", "first SENT");
  expect(arrived()).toMatchObject([{ severity: 4 }, { severity: 3 }]);
  await silence();
  await report("disk", { severity: "SEVERITY_ERROR" });
  await until("severity HELD", "severity SENT", "first SENT");
  await report("disk", closed);
  await until("clear SENT", "severity CANCELLED", "severity SENT", "first SENT");
});

test("an update is not sent when all is again as it was", async () => {
  const { rule, silence, report, until, arrived, ok } = await silencePlace();
  await rule("r", { sendUpdates: true });
  await report("disk");
  await until("first SENT");
  const { id } = await silence();
  await report("disk", { severity: "SEVERITY_CRITICAL" });
  await until("severity HELD", "first SENT");
  await report("disk");
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  const [update] = await until("severity CANCELLED", "first SENT");
  expect(update).toMatchObject({ error: "nothing differs from what was sent before the silence" });
  expect(arrived()).toHaveLength(1);
});

test("several silences hold until the last of them ends, and only in their scope", async () => {
  const { rule, silence, report, until, arrived, ok, made } = await silencePlace();
  await rule("r");
  await rule("other", {}, "e");
  const one = await silence({ ruleNames: ["r"] });
  const two = await silence({ destinationNames: ["d"] });
  await report("disk");
  await until("first HELD", "first SENT");
  expect([arrived("/d").length, arrived("/e").length]).toEqual([0, 1]);
  await ok("POST", `/v1/notification/silences/${one.id}:expire`, {});
  await report("fan");
  while (arrived("/e").length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(arrived("/d")).toEqual([]);
  await ok("POST", `/v1/notification/silences/${two.id}:expire`, {});
  await until("first SENT", "first SENT", "first SENT", "first SENT");
  expect(arrived("/d")).toHaveLength(2);
  expect(await made("silences:preview", { matchers: ["source=web"], ruleNames: ["r"] })).toMatchObject({
    count: "2",
    ruleNames: ["r"],
    broad: false,
  });
});

test("what waits for another try when a silence begins is held by it", async () => {
  const { rule, silence, report, until, arrived, receiver, ok, server, tenant, deliveries } = await silencePlace();
  await rule("r");
  receiver.answer((_request, response) => response.writeHead(503).end());
  await report("disk");
  while (arrived().length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const { id } = await silence();
  const waits = () => server.database.sql`select from due_deliveries where tenant_id = ${tenant.id} and tries > 0`;
  while ((await waits()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  receiver.answer((_request, response) => response.writeHead(200).end());
  const [waiting] = await deliveries("?status=PENDING");
  const { outcome, steps } = await ok("POST", "/v1/notification/rules/r:explain", { subject: waiting?.subject });
  expect(outcome).toBe("SILENCED");
  expect(steps).toContainEqual(
    expect.objectContaining({
      step: "silence",
      silenceId: id,
      reason: "a silence holds it: what waits becomes HELD when it would be tried next",
    }),
  );
  await server.database.sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id}`;
  await server.database.sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id}`;
  await until("first HELD");
  expect(arrived()).toHaveLength(1);
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  await until("first SENT");
  expect(arrived()).toHaveLength(2);
});

test("repetitions that are held are dropped, and the next one is at its time", async () => {
  const { rule, silence, report, until, arrived, ok } = await silencePlace();
  await rule("r", { repeat: true, repeatInterval: 0 });
  await report("disk");
  await until("first SENT");
  const { id } = await silence();
  for (let i = 0; i < 3; i++) await report("disk");
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  await report("disk");
  await until("repeat SENT", "first SENT");
  expect(arrived()).toHaveLength(2);
});

test("a silence until what it matches has ended ends with the last of it", async () => {
  const { rule, silence, report, until, ok, call } = await silencePlace();
  const endless = { endsAt: undefined, untilResolved: true };
  const refused = { matchers: ["source=web"], comment: "c", untilResolved: true };
  expect(await call("POST", "/v1/notification/silences", refused)).toMatchObject({ status: 400, body: { code: 9 } });
  await rule("r");
  await report("disk");
  await report("fan");
  await until("first SENT", "first SENT");
  const { id } = await silence(endless);
  await report("pump");
  await until("first HELD", "first SENT", "first SENT");
  await report("disk", closed);
  expect(await ok("GET", `/v1/notification/silences/${id}`)).toMatchObject({ state: "ACTIVE", untilResolved: true });
  await report("fan", closed);
  await until("first SENT", "first SENT", "first SENT");
  expect(await ok("GET", `/v1/notification/silences/${id}`)).toMatchObject({ state: "EXPIRED" });
});
