import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import type { Notification } from "../../src/notifications/subject/notification.ts";
import { type Answerer, answering } from "../support/receivers.ts";
import { destinations, type Site, secrets, site } from "./kinds.ts";
import { eventId, metricNotification, notificationOf } from "./notifications.ts";

let place: Site;
beforeAll(async () => {
  place = await site();
});
afterAll(() => place[Symbol.asyncDispose]());

/** Takes what the product's documents allow, and answers as they say. */
const strict: Answerer = ({ method, path, headers, body }, response) => {
  const event = JSON.parse(body);
  const { payload } = event;
  const errors = [
    method === "POST" && path === "/v2/enqueue" ? [] : ["not found"],
    headers.authorization === undefined ? [] : ["no authorization wanted"],
    Buffer.byteLength(body) <= 512_000 ? [] : ["too large"],
    /^.{32}$/.test(event.routing_key) ? [] : ["'routing_key' is invalid"],
    ["trigger", "acknowledge", "resolve"].includes(event.event_action) ? [] : ["'event_action' is invalid"],
    /^.{1,255}$/.test(event.dedup_key) ? [] : ["'dedup_key' is invalid"],
    ...(event.event_action === "trigger"
      ? [
          payload.summary.length > 0 && [...payload.summary].length <= 1024 ? [] : ["'payload.summary' is invalid"],
          payload.source.trim().length > 0 ? [] : ["'payload.source' is missing"],
          ["critical", "error", "warning", "info"].includes(payload.severity) ? [] : ["'payload.severity' is invalid"],
          Number.isNaN(Date.parse(payload.timestamp)) ? ["'payload.timestamp' is invalid"] : [],
        ]
      : [payload === undefined ? [] : ["no payload wanted"]]),
  ].flat();
  const good = { status: "success", message: "Event processed", dedup_key: event.dedup_key };
  const bad = { status: "invalid event", message: "Event object is invalid", errors };
  response.writeHead(errors.length === 0 ? 202 : 400).end(JSON.stringify(errors.length === 0 ? good : bad));
};

beforeEach(() => {
  place.receiver.received.length = 0;
  place.receiver.answer(strict);
});

/** What the product gets of a notification that it must take. */
async function sent(notification: Notification) {
  expect(await place.send(destinations.incidentPaging(""), { notification })).toMatchObject({ result: "sent" });
  return JSON.parse(place.receiver.received.at(-1)?.body ?? "");
}

test("a trigger reports what, where, how bad and since when", async () => {
  expect(await sent(notificationOf())).toEqual({
    routing_key: secrets.integrationKey,
    event_action: "trigger",
    dedup_key: `${eventId}:2`,
    client: "Belfry",
    client_url: "https://belfry.example.com",
    links: [
      { href: expect.stringMatching(/^https:\/\/belfry\.example\.com\/console\/#\/occurrences\//), text: "Show event" },
      { href: expect.stringMatching(/^https:\/\/belfry\.example\.com\/console\/#\/silences\/new/), text: "Silence" },
    ],
    payload: {
      summary: "Disk /var is 97 % full on web-1",
      source: "web-1",
      severity: "error",
      timestamp: "2026-11-22T09:59:30.000Z",
      class: "storage",
      custom_details: {
        rule: "page-storage",
        trigger: "disks",
        event: "disk-full",
        summary: "Disk /var is 97 % full",
        body: "Only 1.2 GB are free.",
        since: "2026-11-22T09:30:00.000Z",
        count: "3",
        fields: { mount: "/var", free: 1.2 },
        dimensions: { host: "web-1", site: "Köln" },
      },
    },
  });
});

test.each([
  ["first", false, "trigger"],
  ["repeat", false, "trigger"],
  ["severity", false, "trigger"],
  ["unacknowledged", false, "trigger"],
  ["acknowledged", false, "acknowledge"],
  ["clear", true, "resolve"],
] as const)("%s: %s, one alert", async (occasion, clear, action) => {
  const { event_action, dedup_key } = await sent(notificationOf({ occasion, clear }));
  expect({ event_action, dedup_key }).toEqual({ event_action: action, dedup_key: `${eventId}:2` });
});

test.each([
  [Severity.CRITICAL, "critical"],
  [Severity.ERROR, "error"],
  [Severity.WARNING, "warning"],
  [Severity.INFO, "info"],
  [Severity.DEBUG, "info"],
  [Severity.DEFAULT, "info"],
])("severity %i is %s", async (severity, word) => {
  expect((await sent(notificationOf({ event: { severity } }))).payload.severity).toBe(word);
});

test.each(["", " ", "\u00a0", "\u3000"])("the source of an entity named %j is its id", async (name) => {
  const notification = notificationOf();
  const { payload } = await sent({ ...notification, entity: { ...notification.entity, name } });
  expect(payload.source).toBe(notification.entity.id);
});

test("a metric has its value among the details", async () => {
  const { payload } = await sent(metricNotification());
  expect(payload.custom_details).toMatchObject({ metric: "cpu.busy", value: 97.5 });
});

describe("sizes", () => {
  const withMessage = (message: string, others: Parameters<typeof notificationOf>[0] = {}) => {
    const notification = notificationOf(others);
    return { ...notification, rule: { ...notification.rule, message } };
  };

  test("a summary has 1,024 characters, of any plane", async () => {
    const { summary } = (await sent(withMessage("😀".repeat(1100)))).payload;
    expect([...summary]).toHaveLength(1024);
    expect((await sent(withMessage("😀".repeat(1024)))).payload.summary).toBe("😀".repeat(1024));
  });

  test("a summary that would be empty is the rule's name", async () => {
    expect((await sent(withMessage("{{nothing}} "))).payload.summary).toBe("page-storage");
  });

  test("details that would make more than 512,000 bytes are left out", async () => {
    const large = { body: "\u0001".repeat(65_000), metadata: { x: "\u0002".repeat(65_000) } };
    const { payload } = await sent(withMessage("x", { event: large }));
    expect(payload.custom_details).toEqual({ note: "left out: too large" });
  });
});

test("what the product says of a bad event is shown", async () => {
  place.receiver.answer(answering(400, '{"status":"invalid event","errors":["\'routing_key\' is invalid"]}'));
  const { answer } = await place.send(destinations.incidentPaging(""));
  expect(answer).toBe(`HTTP 400: {"status":"invalid event","errors":["'routing_key' is invalid"]}`);
});

test("what it would send has no key", async () => {
  const type = create(DestinationTypeSchema, { type: destinations.incidentPaging("") });
  const { subject, body } = await compose(type, notificationOf(), place.world);
  expect(subject).toBe("Disk /var is 97 % full on web-1");
  expect(JSON.parse(body)).toMatchObject({ event_action: "trigger", payload: { source: "web-1" } });
  expect(body).not.toContain(secrets.integrationKey);
});
