import { create } from "@bufbuild/protobuf";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { answering, type Received } from "../support/receivers.ts";
import { destinations, fileSite, secrets, type TypeInit } from "./kinds.ts";
import { eventId, metricNotification, notificationOf } from "./notifications.ts";

const place = await fileSite(answering(204));

const webhook = (value: object): TypeInit => ({
  case: "webhook",
  value: { url: `${place.receiver.url}/hook`, ...value },
});
const last = () => place.receiver.received.at(-1) as Received;
const verified = (secret: string, { body, headers }: Received) =>
  new Webhook(secret).verify(body, headers as Record<string, string>);

const body = {
  id: "019abcde-0000-7000-8000-000000000001",
  tenant: "acme",
  timestamp: "1795341600000",
  message: "Disk /var is 97 % full on web-1",
  url: `https://belfry.example.com/console/#/occurrences/${encodeURIComponent(`${eventId}:2`)}`,
  occasion: "first",
  clear: false,
  rule: {
    name: "page-storage",
    trigger_names: ["disks"],
    destination_names: ["ops"],
    message: "{{{event.summary}}} on {{{entity.name}}}",
    enabled: true,
    repeat_interval: 3600,
  },
  trigger: { definition: { event: { query: { clause: {} } } } },
  event: {
    id: eventId,
    name: "disk-full",
    type: "storage",
    summary: "Disk /var is 97 % full",
    severity: 4,
    severity_name: "SEVERITY_ERROR",
    status: 1,
    status_name: "STATUS_OPEN",
    acknowledged: false,
    start_time: "1795339800000",
    fields: { mount: "/var", free: 1.2 },
  },
  entity: { id: "ZW50aXR5LWlkLW9mLTI4LWNoYXI=", name: "web-1", dimensions: { host: "web-1", site: "Köln" } },
};

test("the body holds the event, the rule, the trigger and the entity", async () => {
  expect((await place.send(webhook({}))).result).toBe("sent");
  expect(JSON.parse(last().body)).toEqual(body);
  expect(last()).toMatchObject({ method: "POST", path: "/hook" });
  expect(last().headers["content-type"]).toBe("application/json; charset=utf-8");
});

test.each(["..", "%2E.", ".\t."])("a value %j does not lead out of its segment of the path", async (name) => {
  const url = `${place.receiver.url}/hooks/{{{event.name}}}/acme`;
  expect(await place.send(webhook({ url }), { notification: notificationOf({ event: { name } }) })).toMatchObject({
    result: name === ".\t." ? "sent" : "failed",
  });
  await place.send(webhook({ url }), { notification: notificationOf({ event: { name: "../admin?x#y" } }) });
  expect(place.receiver.received.map((each) => each.path)).not.toContain("/acme");
  expect(last().path).toBe("/hooks/..%2Fadmin%3Fx%23y/acme");
});

test("the body of a metric holds it in place of the event", async () => {
  await place.send(webhook({}), { notification: metricNotification() });
  expect(JSON.parse(last().body)).toMatchObject({
    event: null,
    metric: { name: "cpu.busy", value: 97.5, timestamp: "2026-11-22T09:59:00.000Z" },
    trigger: { definition: { metricThreshold: { metricName: "cpu.busy", max: 90 } } },
  });
  await place.send(webhook({}), { notification: metricNotification({ metric: { name: "cpu.busy" } }) });
  expect(JSON.parse(last().body).metric).toEqual({ name: "cpu.busy", value: null, timestamp: null });
});

test("a clear is reported", async () => {
  await place.send(webhook({}), { notification: notificationOf({ clear: true, occasion: "clear" }) });
  expect(JSON.parse(last().body).clear).toBe(true);
});

describe("Standard Webhooks", () => {
  test("an independent library verifies the signature", async () => {
    await place.send(webhook({ signingSecret: secrets.signingSecret }));
    expect(verified(secrets.signingSecret, last())).toEqual(body);
  });

  test("while a secret is exchanged, both verify", async () => {
    const next = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
    await place.send(webhook({ signingSecret: `${next} ${secrets.signingSecret}` }));
    expect(verified(next, last())).toEqual(body);
    expect(verified(secrets.signingSecret, last())).toEqual(body);
    expect(() => verified(`whsec_${Buffer.alloc(32, 1).toString("base64")}`, last())).toThrow();
  });

  test("without a secret there is no signature, but the id and the time", async () => {
    await place.send(webhook({}));
    const { headers } = last();
    expect(headers["webhook-signature"]).toBeUndefined();
    expect(headers["webhook-id"]).toBe(body.id);
    expect(Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1000)).toBeLessThan(60);
  });

  test("every try has the same id and body, and verifies by its own time", async () => {
    place.receiver.answer(answering(503));
    await place.send(webhook({ signingSecret: secrets.signingSecret }));
    await place.send(webhook({ signingSecret: secrets.signingSecret }));
    const [first, second] = place.receiver.received;
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    expect(second?.body).toBe(first?.body);
    expect(verified(secrets.signingSecret, second as Received)).toEqual(body);
  });
});

test("headers of the destination are sent", async () => {
  await place.send(destinations.webhook(place.receiver.url));
  expect(last().headers).toMatchObject({ authorization: secrets.header, "x-team": "storage" });
});

test("tags in the address take values as parts of it", async () => {
  const url = `${place.receiver.url}/{{event.name}}/{{{entity.name}}}?site={{entity.dimensions.site}}`;
  await place.send(webhook({ url }), { notification: notificationOf({ event: { name: "a/../b?c" } }) });
  expect(last().path).toBe("/a%2F..%2Fb%3Fc/web-1?site=K%C3%B6ln");
});

test.each(["{{event.nothing}}", "{{event.name}}", "ftp://{{event.name}}/"])(
  "an address that a template makes no address of fails: %s",
  async (url) => {
    expect(await place.send(webhook({ url }))).toMatchObject({
      result: "failed",
      reason: "bad_address",
      course: "fail",
    });
  },
);

test("a rule without a message sends a line of its own", async () => {
  const notification = notificationOf();
  const rule = { ...notification.rule, message: "" };
  await place.send(webhook({}), { notification: { ...notification, rule } });
  expect(JSON.parse(last().body).message).toBe("ERROR: disk-full on web-1: Disk /var is 97 % full");
  await place.send(webhook({}), { notification: { ...notification, rule, clear: true, occasion: "clear" } });
  expect(JSON.parse(last().body).message).toBe("Resolved: disk-full on web-1: Disk /var is 97 % full");
  await place.send(webhook({}), { notification: { ...metricNotification(), rule } });
  expect(JSON.parse(last().body).message).toBe("cpu.busy is 97.5 on web-1");
});

test("an endless message is cut", async () => {
  const notification = notificationOf({ event: { body: "é".repeat(30_000) } });
  const rule = { ...notification.rule, message: "{{{event.body}}}".repeat(100) };
  await place.send(webhook({}), { notification: { ...notification, rule } });
  expect(JSON.parse(last().body).message).toHaveLength(262_144);
});

test("what it would send is its body", async () => {
  const type = create(DestinationTypeSchema, { type: destinations.webhook("https://hook.example.com") });
  const { subject, body: text } = await compose(type, notificationOf(), place.world);
  expect(subject).toBe("");
  expect(JSON.parse(text)).toEqual(body);
});
