import { create } from "@bufbuild/protobuf";
import { afterAll, describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema, WebhookFormat } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { checkDestination, compose } from "../../src/notifications/kinds/kinds.ts";
import { sampleGroup } from "../../src/notifications/templates/group-notification.ts";
import { brokenTemplate, renderedCharsMax } from "../../src/notifications/templates/template.ts";
import { heldMs, turnMsMax } from "../support/loop-turns.ts";
import { site, type TypeInit } from "./kinds.ts";
import { notificationOf } from "./notifications.ts";

/** As the API bounds templates, and bodies of events. */
const templateBytesMax = 65_536;
const factsMax = 20;

const place = await site();
afterAll(() => place[Symbol.asyncDispose]());

const addressBytesMax = 8000;
type Filling = (bytes: number) => string;
const filled =
  (piece: string): Filling =>
  (bytes) =>
    piece.repeat(Math.max(0, Math.floor(bytes / Buffer.byteLength(piece))));
const deep =
  (piece: string): Filling =>
  (bytes) =>
    `${"{{#event}}".repeat(32)}${filled(piece)(bytes - 1000)}${"{{/event}}".repeat(32)}`;

/** The templates that cost a parser, or a renderer, the most. */
const worst: Record<string, Filling> = {
  "tags of nothing": filled("{{a}}"),
  "tags of a long text": filled("{{event.body}}"),
  "tags of a long text as it is": filled("{{{event.body}}}"),
  "sections side by side": filled("{{#event}}{{/event}}"),
  "sections within sections": deep("{{x}}"),
  "long texts within sections": deep("{{{event.body}}}"),
  "a name of many parts": (bytes) => `{{${filled("a.")(bytes - 10)}a}}`,
  "blanks within tags": filled(`{{${" ".repeat(900)}a${" ".repeat(900)}}}`),
  "blanks after tags": filled(`{{a}}${" ".repeat(1000)}x`),
  "tags that change the tags": filled("{{=<% %>=}}<%={{ }}=%>"),
  "lines of one section each": filled(" {{#event}}\n {{/event}}\n"),
  "halves of tags": filled("{ } "),
};

const notification = notificationOf({
  event: { body: "<".repeat(65_536), summary: "\"&'<>".repeat(25) },
  entity: {
    id: "e",
    name: "n",
    dimensions: Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`k${i}`, "v".repeat(255)])),
  },
});

/** Each kind with as many templates as it takes. */
const kinds: Record<string, (text: string, filling: Filling) => TypeInit> = {
  officeChat: (value) => ({
    case: "officeChat",
    value: { webhookUrl: place.receiver.url, text: value, facts: Array.from({ length: factsMax }, () => ({ value })) },
  }),
  email: (text) => ({ case: "email", value: { to: "ada@example.com", subject: text, body: text } }),
  event: (text) => ({
    case: "event",
    value: {
      nameTemplate: text,
      typeTemplate: text,
      summaryTemplate: text,
      bodyTemplate: text,
      severity: Severity.INFO,
    },
  }),
  itsm: (text) => ({
    case: "itsm",
    value: { baseUrl: place.receiver.url, shortDescription: text, closeNotes: text, credentialId: "c" },
  }),
  teamChat: () => ({ case: "teamChat", value: { channel: "ops", token: "xoxb" } }),
  incidentPaging: () => ({ case: "incidentPaging", value: { integrationKey: "k".repeat(32) } }),
  webhook: ({ length }, filling) => ({
    case: "webhook",
    value: { url: `${place.receiver.url}/${filling(Math.min(addressBytesMax, length))}` },
  }),
};

/** As many of a kind's templates as are accepted: all of this size, else of a smaller one; none where the least are too many. */
async function accepted(kind: (text: string, filling: Filling) => TypeInit, filling: Filling): Promise<TypeInit> {
  for (let bytes = templateBytesMax; bytes >= 1; bytes /= 2) {
    const made = kind(filling(bytes), filling);
    const broken = await checkDestination(create(DestinationTypeSchema, { type: made }), "tenant");
    if (!broken.some(({ rule }) => rule.includes("steps"))) return made;
  }
  return kind("", () => "");
}

/** Templates of the list of alerts, which are visited for each of them. */
const ofAlerts: Record<string, Filling> = {
  "tags of each alert": (bytes) => `{{#alerts}}${filled("{{labels.host}}{{fingerprint}}")(bytes - 100)}{{/alerts}}`,
  "alerts of alerts": (bytes) => `{{#alerts}}{{#alerts}}${filled("x{{z}}")(bytes - 100)}{{/alerts}}{{/alerts}}`,
  "each alert as it is": filled("{{alerts}}"),
};

/** As much as a message of a group holds. */
const members = sampleGroup(notificationOf({ event: { body: "<".repeat(8192) } }), 100);

describe.each(Object.entries({ ...worst, ...ofAlerts }))("%s", (_what, filling) => {
  const message = brokenTemplate(filling(templateBytesMax)) === undefined ? filling(templateBytesMax) : filling(4096);

  test("are read, rendered and sent by every kind without holding up others, and make a bounded text", async () => {
    const told = [notification, members].map((each) => ({ ...each, rule: { ...each.rule, message } }));
    for (const [name, kind] of Object.entries(kinds)) {
      const whole = create(DestinationTypeSchema, { type: kind(filling(templateBytesMax), filling) });
      const read = await heldMs(() => checkDestination(whole, "tenant"));
      expect(read.turn, `${name}, read`).toBeLessThan(turnMsMax);
      const type = await accepted(kind, filling);
      place.receiver.received.length = 0;
      for (const each of told) {
        const sent = await heldMs(() => place.send(type, { notification: each }));
        expect(sent.turn, `${name}, sent`).toBeLessThan(turnMsMax);
        expect(sent.all, `${name}, all of it`).toBeLessThan(2 * turnMsMax);
      }
      // A text in a body of JSON may take six characters for each.
      for (const { body } of place.receiver.received) expect(body.length).toBeLessThan(8 * renderedCharsMax);
    }
  });
});

test("what was stored before and takes too much fails with the reason, and is previewed with it", async () => {
  const value = { url: place.receiver.url, format: WebhookFormat.TEMPLATE, body: "[{{#alerts}}{{#alerts}}{{#alerts}}" };
  value.body += `${"{{/alerts}}".repeat(3)}]`;
  const type: TypeInit = { case: "webhook", value };
  const why = "the templates take more than 600000 steps";
  const outcome = await place.send(type, { notification: members });
  expect(outcome).toMatchObject({ result: "failed", reason: "bad_request", answer: why });
  const whole = create(DestinationTypeSchema, { type });
  expect(await compose(whole, members, place.world)).toEqual({ subject: "", body: `Nothing would be sent: ${why}` });
  expect(await checkDestination(whole, "tenant")).toEqual([
    { path: "webhook.body", rule: expect.stringMatching(/^takes up to \d+ steps to render; 600000 are allowed/) },
  ]);
});

test("the templates of a destination count together, and bodies are tried out within one notification's steps", async () => {
  const fact = { name: "x", value: "x".repeat(40_000) };
  const card = { webhookUrl: "https://example.com", text: "t", facts: [fact, fact, fact, fact] };
  const check = (type: TypeInit) => checkDestination(create(DestinationTypeSchema, { type }), "tenant");
  expect(await check({ case: "officeChat", value: card })).toEqual([
    { path: "officeChat.facts[3].value", rule: expect.stringContaining("takes up to 640") },
  ]);
  const body = `["${"{{a}}".repeat(12_000)}"]`;
  const value = { url: "https://example.com", format: WebhookFormat.TEMPLATE, body };
  expect(await check({ case: "webhook", value })).toEqual([
    { path: "webhook.body", rule: "the templates take more than 600000 steps" },
  ]);
});

test("an event that rules make of an event that rules made does not grow", async () => {
  const text = "{{{event.body}}}{{{event.body}}}";
  const type: TypeInit = {
    case: "event",
    value: {
      nameTemplate: text,
      typeTemplate: text,
      summaryTemplate: text,
      bodyTemplate: text,
      severity: Severity.INFO,
    },
  };
  let body = "x".repeat(8192);
  for (let rule = 0; rule < 5; rule++) {
    place.events.length = 0;
    const chain = Array.from({ length: rule }, (_, i) => `rule ${i}`);
    const told = notificationOf({ event: { body }, chain });
    expect((await place.send(type, { notification: told })).result).toBe("sent");
    const [made] = place.events;
    body = made?.item.body ?? "";
    expect(Buffer.byteLength(body)).toBe(Math.min(16_384 << rule, 65_536));
    expect(made?.item.name.length).toBeLessThanOrEqual(255);
    expect(made?.item.summary.length).toBeLessThanOrEqual(128);
  }
});

test("an address that a template makes too long is not cut, but fails", async () => {
  place.receiver.received.length = 0;
  const url = `${place.receiver.url}/{{{event.body}}}`;
  const outcome = await place.send({ case: "webhook", value: { url } }, { notification });
  expect(outcome).toMatchObject({ result: "failed", reason: "bad_address", course: "fail" });
  expect(outcome.answer).toBe("the address has 16384 characters or more");
  expect(place.receiver.received).toEqual([]);
});
