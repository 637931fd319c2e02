import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { beforeAll, expect, test } from "vitest";
import { DeliveryService, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { BreakerState } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { transport } from "../support/clients.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { v1 } from "../support/v1.ts";
import { sendingTenant } from "./dispatch.ts";

const server = await testServer();
const receiver = await httpReceiver();
const nowMs = Date.now();
const tenant = await sendingTenant(server.database, receiver.url, nowMs, { good: {}, bad: {} });
const way = transport(server.target, "grpc", tenant.headers);
const deliveries = createClient(DeliveryService, way);
const json = v1(server.url, tenant.headers);
const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Waits until nothing of a destination that is due now is left. */
async function settled(count: number) {
  for (;;) {
    const { totalCount } = await deliveries.listDeliveries({ status: DeliveryStatus.PENDING });
    if (Number(totalCount) <= count) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

beforeAll(async () => {
  receiver.answer((request, response) => void response.writeHead(request.path === "/good" ? 200 : 400).end("no"));
  await tenant.put([
    ...range(5).map((event) => ({ destination: "good", event, createdMs: nowMs + event })),
    ...range(2).map((event) => ({ destination: "bad", event, createdMs: nowMs + 10 + event })),
    { destination: "good", event: 9, createdMs: nowMs + 20, dueMs: nowMs + 3_600_000 },
  ]);
  await settled(1);
});

test("deliveries are listed with what became of them, the newest first", async () => {
  const { deliveries: all, totalCount } = await deliveries.listDeliveries({});
  expect(totalCount).toBe(8n);
  const times = all.map(({ createTime }) => Number(createTime?.seconds) * 1000 + Number(createTime?.nanos) / 1e6);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
  expect(all[0]).toMatchObject({ status: DeliveryStatus.PENDING, attempts: 0, destination: "good", rule: "page" });
  expect(all[0]?.nextTryTime?.seconds).toBe(BigInt(Math.floor((nowMs + 3_600_000) / 1000)));
  expect(all.find(({ destination }) => destination === "bad")).toMatchObject({
    status: DeliveryStatus.FAILED,
    trigger: "disks",
    attempts: 1,
    error: "rejected: HTTP 400: no",
    tries: [{ reason: "rejected", answer: "HTTP 400: no" }],
  });
});

test("filters combine, and a value that nothing can have lists nothing", async () => {
  const count = async (request: object) => Number((await deliveries.listDeliveries(request)).totalCount);
  const { deliveries: sent } = await deliveries.listDeliveries({ status: DeliveryStatus.SENT });
  expect(sent).toHaveLength(5);
  const [one] = sent;
  expect(await count({ destination: "bad" })).toBe(2);
  expect(await count({ destination: "bad", status: DeliveryStatus.SENT })).toBe(0);
  expect(await count({ rule: "page", trigger: "disks" })).toBe(8);
  expect(await count({ eventId: one?.eventId, destination: "good" })).toBe(1);
  expect(await count({ eventId: one?.occurrenceId, status: DeliveryStatus.SENT })).toBe(1);
  expect(await count({ entityId: one?.entityId })).toBe(8);
  expect(await count({ metricName: "cpu" })).toBe(0);
  expect(await count({ eventId: "nonsense" })).toBe(0);
});

test("a time range holds what was decided from its start until before its end, on all pages", async () => {
  const at = (ms: number) => timestampFromMs(nowMs + ms);
  const times = async (request: object) => {
    const seen: number[] = [];
    for (let pageToken = ""; ; ) {
      const page = await deliveries.listDeliveries({ ...request, pageSize: 2, pageToken });
      seen.push(...page.deliveries.map(({ createTime }) => timestampMs(createTime as Timestamp) - nowMs));
      if (page.nextPageToken === "") return { seen, total: Number(page.totalCount) };
      pageToken = page.nextPageToken;
    }
  };
  expect(await times({ startTime: at(2), endTime: at(11) })).toEqual({ seen: [10, 4, 3, 2], total: 4 });
  expect(await times({ startTime: at(11) })).toEqual({ seen: [20, 11], total: 2 });
  expect(await times({ endTime: at(1) })).toEqual({ seen: [0], total: 1 });
  await expect(times({ startTime: at(2), endTime: at(2) })).rejects.toThrow("startTime must be before endTime");
  const { nextPageToken } = await deliveries.listDeliveries({ startTime: at(0), pageSize: 2 });
  const other = deliveries.listDeliveries({ startTime: at(1), pageSize: 2, pageToken: nextPageToken });
  await expect(other).rejects.toThrow(/page/i);
});

test("pages follow each other without gap, and carry the number of all", async () => {
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await deliveries.listDeliveries({ pageSize: 3, pageToken });
    expect(page.totalCount).toBe(8n);
    seen.push(...page.deliveries.map(({ id }) => id));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(new Set(seen).size).toBe(8);
});

test("one that has failed is tried again at once under its id; another is not", async () => {
  const failed = await deliveries.listDeliveries({ status: DeliveryStatus.FAILED });
  const id = failed.deliveries[0]?.id ?? "";
  receiver.answer(answering(200));
  const again = await json("POST", `/v1/notification/deliveries/${id}:retry`, {});
  expect(again).toMatchObject({ status: 200, body: { delivery: { id, status: "PENDING", attempts: 1 } } });
  await settled(1);
  const path = `/v1/notification/deliveries/${id}:retry`;
  expect(await json("POST", path, {})).toMatchObject({ status: 400, body: { code: 9 } });
  const { deliveries: sent } = await deliveries.listDeliveries({ status: DeliveryStatus.SENT, destination: "bad" });
  expect(sent).toMatchObject([{ id, attempts: 2, tries: [{ reason: "rejected" }, { reason: "sent" }] }]);
  expect(receiver.received.filter(({ headers }) => headers["webhook-id"] === id)).toHaveLength(2);
  for (const unknown of ["nonsense", "019abcde-0000-7000-8000-000000000001"]) {
    const answer = await json("POST", `/v1/notification/deliveries/${unknown}:retry`, {});
    expect(answer).toMatchObject({ status: 404, body: { code: 5 } });
  }
});

test("one that has failed and is over is not tried again, and the error says so", async () => {
  const { sql } = server.database;
  const { deliveries: failed } = await deliveries.listDeliveries({ status: DeliveryStatus.FAILED });
  const [{ id = "" } = {}] = failed;
  const path = `/v1/notification/deliveries/${id}:retry`;
  const [{ subject } = {}] =
    await sql`select subject from delivery_history where tenant_id = ${tenant.id} and id = ${id}`;
  const stand = (standing: boolean) =>
    sql`update rule_matches set standing = ${standing} where tenant_id = ${tenant.id} and subject = ${subject}`;
  await stand(false);
  const over = `delivery "${id}" is not needed any more: the condition is over`;
  expect(await json("POST", path, {})).toMatchObject({ status: 400, body: { code: 9, message: over } });
  await stand(true);
  await sql`update rules set enabled = false where tenant_id = ${tenant.id}`;
  const disabled = `delivery "${id}" is not needed any more: the rule is disabled, or there is no such rule any more`;
  expect(await json("POST", path, {})).toMatchObject({ status: 400, body: { code: 9, message: disabled } });
  await sql`update rules set enabled = true where tenant_id = ${tenant.id}`;
  expect((await deliveries.getDelivery({ id })).delivery?.status).toBe(DeliveryStatus.FAILED);
});

test("one is found by the id that its receiver holds, whether it waits or is done", async () => {
  const { deliveries: all } = await deliveries.listDeliveries({});
  expect(new Set(all.map(({ status }) => status)).size).toBeGreaterThan(2);
  for (const each of all) {
    expect(each.subject).toBe(each.occurrenceId);
    expect((await deliveries.getDelivery({ id: each.id })).delivery).toEqual(each);
  }
  for (const unknown of ["nonsense", "019abcde-0000-7000-8000-000000000001"]) {
    expect(await json("GET", `/v1/notification/deliveries/${unknown}`)).toMatchObject({
      status: 404,
      body: { code: 5 },
    });
  }
});

test("of one that is tried again very often the newest attempts are kept, and all are counted", async () => {
  const failed = await deliveries.listDeliveries({ status: DeliveryStatus.FAILED });
  const id = failed.deliveries[0]?.id ?? "";
  const { sql } = server.database;
  await sql`
    update delivery_history set attempts = (
      select jsonb_agg(jsonb_build_object('timeMs', n, 'reason', 'busy', 'answer', '')) from generate_series(1, 19) as n)
    where tenant_id = ${tenant.id} and id = ${id}`;
  receiver.answer(answering(400));
  for (const attempts of [20, 21, 22]) {
    await json("POST", `/v1/notification/deliveries/${id}:retry`, {});
    await settled(1);
    const { deliveries: again } = await deliveries.listDeliveries({ status: DeliveryStatus.FAILED });
    const { tries = [] } = again[0] ?? {};
    expect(again[0]).toMatchObject({ id, attempts });
    expect(tries).toHaveLength(20);
    expect(tries[0]?.time?.nanos).toBe((attempts - 19) * 1_000_000);
    expect(tries.at(-1)?.reason).toBe("rejected");
  }
  const [kept] = await sql<{ count: number }[]>`
    select jsonb_array_length(attempts) as count from delivery_history where tenant_id = ${tenant.id} and id = ${id}`;
  expect(kept?.count).toBe(20);
});

test("of several calls at once for one that has failed, one has it tried again", async () => {
  const failed = await deliveries.listDeliveries({ status: DeliveryStatus.FAILED });
  const id = failed.deliveries[0]?.id ?? "";
  const arrived = () => receiver.received.filter(({ headers }) => headers["webhook-id"] === id).length;
  const before = arrived();
  const all = Promise.withResolvers<void>();
  receiver.answer((_request, response) => void all.promise.then(() => response.writeHead(400).end()));
  const path = `/v1/notification/deliveries/${id}:retry`;
  const answers = await Promise.all(range(8).map(() => json("POST", path, {})));
  all.resolve();
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  const others = answers.filter(({ status }) => status !== 200);
  // It is PENDING by then, or was taken out of the history meanwhile.
  for (const { body } of others) expect([9, 5]).toContain(body.code);
  await settled(1);
  expect(arrived()).toBe(before + 1);
});

test("what was sent within 24 hours is counted on rules, triggers and destinations", async () => {
  const { destination } = await createClient(DestinationService, way).getDestination({ name: "good" });
  expect(destination).toMatchObject({ recentNotificationCount: 5n, breakerState: BreakerState.CLOSED });
  const { rules } = await createClient(RuleService, way).listRules({});
  expect(rules[0]?.recentNotificationCount).toBe(6n);
  const { triggers } = await createClient(TriggerService, way).listTriggers({});
  expect(triggers[0]?.recentNotificationCount).toBe(6n);
});

test("the counts of a rule and of a trigger go with them, and do not come back with their names", async () => {
  const { body: before } = await json("GET", "/v1/notification/triggers/disks");
  expect(before.trigger.recentNotificationCount).not.toBe("0");
  await json("DELETE", "/v1/notification/rules/page");
  await json("DELETE", "/v1/notification/triggers/disks");
  const { name, type } = before.trigger;
  const trigger = await json("POST", "/v1/notification/triggers", { name, type });
  expect(trigger.body.trigger.recentNotificationCount ?? "0").toBe("0");
  const rule = await json("POST", "/v1/notification/rules", { name: "page", triggerNames: [name] });
  expect(rule.body.rule.recentNotificationCount ?? "0").toBe("0");
  const shown = await json("GET", "/v1/notification/triggers/disks");
  expect(shown.body.trigger.recentNotificationCount).toBe("0");
});
