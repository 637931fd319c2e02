import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { answering } from "../support/receivers.ts";
import { fileSite, secrets, type TypeInit } from "./kinds.ts";
import { metricNotification, notificationOf } from "./notifications.ts";

const place = await fileSite(answering(202));

const officeChat = (value: object = {}): TypeInit => ({
  case: "officeChat",
  value: { webhookUrl: `${place.receiver.url}/${secrets.webhookPath}`, text: "{{{event.name}}} {{{link}}}", ...value },
});

interface Block {
  type: string;
  text?: string;
  color?: string;
  facts?: { title: string; value: string }[];
}

/** The card of the last message, checked for what both products want of every message. */
function lastCard() {
  const { body, headers } = place.receiver.received.at(-1) ?? { body: "", headers: {} };
  expect(headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(27_000);
  const message = JSON.parse(body);
  expect(message).toEqual({
    type: "message",
    attachments: [
      { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content: expect.any(Object) },
    ],
  });
  const card = message.attachments[0].content;
  expect(card).toMatchObject({ type: "AdaptiveCard", version: "1.2" });
  const [title, text, set] = card.body as Block[];
  return { title: title as Block, text: text?.text ?? "", facts: set?.facts ?? [], actions: card.actions };
}

test("a card has a title, the text, facts of the event and a way to it", async () => {
  expect((await place.send(officeChat())).result).toBe("sent");
  const { title, text, facts, actions } = lastCard();
  expect(title).toMatchObject({ text: "ERROR: disk-full on web-1: Disk /var is 97 % full", color: "attention" });
  expect(text).toMatch(
    /^disk-full \[Disk \/var is 97 % full\]\(https:\/\/belfry\.example\.com\/console\/#\/occurrences\//,
  );
  expect(facts).toEqual([
    { title: "Severity", value: "ERROR" },
    { title: "Since", value: "2026-11-22 09:30:00 UTC" },
    { title: "Seen", value: "3 times" },
    { title: "type", value: "storage" },
    { title: "site", value: "Köln" },
    { title: "mount", value: "/var" },
    { title: "free", value: "1.2" },
  ]);
  const url = expect.stringMatching(/^https:\/\/belfry\.example\.com\/console\/#\//);
  expect(actions).toEqual(["Show event", "Silence"].map((title) => ({ type: "Action.OpenUrl", title, url })));
});

test("facts of the destination replace them, rendered", async () => {
  const facts = [
    { name: "Mount", value: "{{{entity.dimensions.site}}} {{event.severity}}" },
    { name: "", value: "" },
  ];
  await place.send(officeChat({ facts }));
  expect(lastCard().facts).toEqual([
    { title: "Mount", value: "Köln ERROR" },
    { title: "", value: "" },
  ]);
});

test.each([
  [Severity.CRITICAL, false, "attention"],
  [Severity.WARNING, false, "warning"],
  [Severity.INFO, false, "default"],
  [Severity.CRITICAL, true, "good"],
])("the title of severity %i, clear: %s, is %s", async (severity, clear, color) => {
  await place.send(officeChat(), {
    notification: notificationOf({ clear, occasion: clear ? "clear" : "first", event: { severity } }),
  });
  const { title } = lastCard();
  expect(title.color).toBe(color);
  expect(title.text?.startsWith("Resolved: ")).toBe(clear);
});

test("a metric has its value in the title, its bound beneath, and the page of its entity", async () => {
  await place.send(officeChat(), { notification: metricNotification() });
  const { title, facts, actions } = lastCard();
  expect(title.text).toBe("cpu.busy is 97.5 on web-1");
  expect(facts[0]).toEqual({ title: "Threshold", value: "above 90" });
  expect(actions).toMatchObject([{ title: "Show entity" }, { title: "Silence" }]);
});

describe("a message takes 27,000 bytes at most", () => {
  test.each([
    ["a long text", { text: "x".repeat(60_000) }],
    ["a text of characters of three bytes", { text: "磁".repeat(20_000) }],
    ["a text of signs that JSON escapes", { text: '"\\\n'.repeat(20_000) }],
    [
      "twenty long facts",
      { facts: Array.from({ length: 20 }, (_, i) => ({ name: `f${i}`, value: "😀".repeat(2000) })) },
    ],
  ])("%s", async (_name, value) => {
    await place.send(officeChat(value));
    const { text, facts } = lastCard();
    expect(`${text}${facts.map((fact) => fact.value)}`).toContain("…");
    expect(text.isWellFormed()).toBe(true);
  });

  test("what fits is left whole", async () => {
    await place.send(officeChat({ text: "x".repeat(25_000) }));
    expect(lastCard().text).toBe("x".repeat(25_000));
  });
});

test("what is too large all the same is sent once more at half the size", async () => {
  place.receiver.answer((request, response) => response.writeHead(request.body.length > 20_000 ? 413 : 202).end());
  expect((await place.send(officeChat({ text: "x".repeat(30_000) }))).result).toBe("sent");
  expect(place.receiver.received.map(({ body }) => Math.ceil(body.length / 13_500))).toEqual([2, 1]);

  place.receiver.received.length = 0;
  place.receiver.answer(answering(413));
  expect(await place.send(officeChat())).toMatchObject({ reason: "rejected", course: "fail" });
  expect(place.receiver.received).toHaveLength(2);
});

test("what it would send is read as text", async () => {
  const type = create(DestinationTypeSchema, { type: officeChat({ text: "{{{event.name}}}" }) });
  expect(await compose(type, notificationOf(), place.world)).toEqual({
    subject: "ERROR: disk-full on web-1: Disk /var is 97 % full",
    body: expect.stringMatching(
      /^disk-full\nSeverity: ERROR\nSince: 2026-11-22 09:30:00 UTC\nSeen: 3 times\ntype: storage\n/,
    ),
  });
});

test.each(["{{{event.body}}}", " {{{event.body}}}\u3000"])("%j, which is nothing, is the rule's name", async (text) => {
  await place.send(officeChat({ text }), { notification: notificationOf({ event: { body: "" } }) });
  expect(lastCard().text).toBe("Rule: page-storage");
});
