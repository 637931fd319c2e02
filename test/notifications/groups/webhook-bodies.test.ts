import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Answerer, answering } from "../../support/receivers.ts";
import { groupPlace } from "./group-place.ts";

type Json = Record<string, unknown>;

const page = readFileSync("docs/webhook-bodies.md", "utf8");
const documented = [...page.matchAll(/^## (.+)\n[\s\S]*?```text\n([\s\S]*?)```/gm)].map(
  ([, product = "", body = ""]) => [product, body.trim()] as const,
);

interface Product {
  /** The path of the page's destination, where it is not /hook. */
  path?: string;
  check(body: Json, path: string): void;
  /** Status and body of a success. */
  success: [number, string];
}

/** Answers as a product does whose contract a body keeps, else with 400 and why. */
const answerOf =
  ({ check, success: [status, answer] }: Product): Answerer =>
  ({ body, path }, response) => {
    try {
      check(JSON.parse(body) as Json, path);
      response.writeHead(status).end(answer);
    } catch (error) {
      response.writeHead(400).end((error as Error).message);
    }
  };

const text = (max: number) =>
  expect.toSatisfy((value: unknown) => typeof value === "string" && value !== "" && value.length <= max);
/** A product that asks for these members, whatever else there is. */
const asks = (members: Json, success: Product["success"]): Product => ({
  check: (body) => expect(body).toMatchObject(members),
  success,
});
const card = {
  header: { title: text(200) },
  sections: [{ widgets: [{ textParagraph: { text: text(10_000) } }] }],
};
const embed = { username: text(80), content: text(2000), embeds: [{ description: text(4096) }] };
const attachment = { fallback: text(1000), color: expect.stringMatching(/^#[\da-f]{6}$/), text: text(16_383) };
const published = { topic: text(64), message: text(4096), priority: expect.toBeOneOf([1, 2, 3, 4, 5]) };

/** What products ask for, and answer: recorded from their documents. */
const products: Record<string, Product> = {
  Discord: {
    check: (body) => expect(body).toEqual({ ...embed, allowed_mentions: { parse: [] } }),
    success: [204, ""],
  },
  Mattermost: asks({ attachments: [attachment] }, [200, "ok"]),
  Telegram: asks({ chat_id: text(32), text: text(4096) }, [200, '{"ok":true,"result":{"message_id":1}}']),
  ntfy: asks({ ...published, click: text(2048) }, [200, '{"id":"x","event":"message"}']),
  "Google Chat": asks({ cardsV2: [{ card }], thread: { threadKey: text(4000) } }, [
    200,
    '{"name":"spaces/a/messages/b"}',
  ]),
  Opsgenie: {
    path: "/v2/alerts{{#clear}}/{{subject}}/close?identifierType=alias{{/clear}}",
    check(body, path) {
      if (/^\/v2\/alerts\/[^/]+\/close\?identifierType=alias$/.test(path))
        return expect(body).toEqual({ source: "Belfry", note: text(25_000) });
      expect(path).toBe("/v2/alerts");
      const texts = { message: text(130), alias: text(512), description: text(15_000) };
      expect(body).toMatchObject({ ...texts, details: expect.any(Object), tags: expect.any(Array) });
      expect((body.tags as unknown[]).every((tag) => typeof tag === "string")).toBe(true);
    },
    success: [202, '{"result":"Request will be processed","took":0.1,"requestId":"r"}'],
  },
  Slack: asks(
    {
      text: text(4000),
      blocks: [
        { type: "section", text: { type: "plain_text", text: text(3000) } },
        { type: "context", elements: [{ type: "mrkdwn", text: text(2000) }] },
      ],
    },
    [200, "ok"],
  ),
};

test("each product of the page has its recorded receiver", () => {
  expect(documented.map(([product]) => product)).toEqual(Object.keys(products));
});

test.each(documented)("%s takes its body of one alert, of 120, and of their end", async (product, body) => {
  const wanted = products[product] as Product;
  const { path = "/hook" } = wanted;
  const { made, receiver, reportAll, until } = await groupPlace();
  receiver.answer(answerOf(wanted));
  const hostile = 'quote " backslash \\ <!channel> \u2028 {{x}} @everyone';
  const webhook = { url: `${receiver.url}${path}`, format: "WEBHOOK_FORMAT_TEMPLATE", body };
  await made("destinations", { name: "d", type: { webhook } });
  const grouping = { by: ["source"], waitSec: "1", intervalSec: "1" };
  await made("rules", {
    name: 'r "1"',
    enabled: true,
    triggerNames: ["all"],
    destinationNames: ["d"],
    sendUpdates: true,
    grouping,
  });
  await reportAll([hostile]);
  await until("first SENT");
  const all = Array.from({ length: 119 }, (_, i) => `${hostile} ${i}`);
  await reportAll(all);
  await until("first SENT", "members SENT");
  await reportAll([hostile, ...all], { status: "STATUS_CLOSED" });
  await until("first SENT", "members SENT", "clear SENT");
});

test("a rule without groups sends one alert in Alertmanager's form", async () => {
  const { made, receiver, report, until } = await groupPlace();
  const webhook = { url: `${receiver.url}/hook`, format: "WEBHOOK_FORMAT_ALERTMANAGER" };
  await made("destinations", { name: "team", type: { webhook } });
  await made("rules", {
    name: "r",
    enabled: true,
    triggerNames: ["all"],
    destinationNames: ["team"],
    sendUpdates: true,
  });
  await report("disk", { summary: "full" });
  await until("first SENT");
  await report("disk", { status: "STATUS_CLOSED", summary: "full" });
  await until("first SENT", "clear SENT");
  const [first, last] = receiver.received.map(({ body }) => JSON.parse(body) as Json);
  const alert = {
    labels: { alertname: "disk", severity: "error", source: "web" },
    annotations: { summary: "full" },
    fingerprint: expect.stringMatching(/^[\da-f]{16}$/),
    generatorURL: "",
  };
  expect(first).toMatchObject({ version: "4", status: "firing", receiver: "team", truncatedAlerts: 0 });
  expect(first?.alerts).toMatchObject([{ ...alert, status: "firing", endsAt: "0001-01-01T00:00:00Z" }]);
  expect(last).toMatchObject({ status: "resolved", groupKey: first?.groupKey, alerts: [{ status: "resolved" }] });
});

test.each([
  ['{"a": {{event.name}}, "b": [{{#alerts}}{{labels}}{{/alerts}}]}', "type.webhook.body"],
  ['{"a": "{{headline}}"', "type.webhook.body"],
  ["", "type.webhook.body"],
])("the body %j is refused when it is stored", async (body, path) => {
  const { call } = await groupPlace();
  const webhook = { url: "http://127.0.0.1/", format: "WEBHOOK_FORMAT_TEMPLATE", body };
  const answer = await call("POST", "/v1/notification/destinations", { name: "d", type: { webhook } });
  expect(answer).toMatchObject({ status: 400 });
  expect(JSON.stringify(answer.body)).toContain(path);
});

test("a body that makes no JSON of a real notification fails its delivery and says so", async () => {
  const { made, receiver, report, until } = await groupPlace();
  receiver.answer(answering(200));
  const body =
    '{"a": {{#event.fields.broken}}oops{{/event.fields.broken}}{{^event.fields.broken}}1{{/event.fields.broken}}}';
  const webhook = { url: `${receiver.url}/hook`, format: "WEBHOOK_FORMAT_TEMPLATE", body };
  await made("destinations", { name: "d", type: { webhook } });
  await made("rules", { name: "r", enabled: true, triggerNames: ["all"], destinationNames: ["d"] });
  await report("disk", { metadataFields: { broken: "yes" } });
  const [failed] = await until("first FAILED");
  expect(failed?.error).toContain("body makes no JSON");
  expect(receiver.received).toEqual([]);
});
