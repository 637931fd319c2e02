import { afterAll, expect, test } from "vitest";
import type { KindName } from "../../src/notifications/kinds/retry.ts";
import type { Notification } from "../../src/notifications/subject/notification.ts";
import { sampleGroup } from "../../src/notifications/templates/group-notification.ts";
import { destinations, site, successes } from "./kinds.ts";
import { notificationOf } from "./notifications.ts";

const place = await site();
afterAll(() => place[Symbol.asyncDispose]());

const link = "https://belfry.example.com/console/#/";
const membersMax = 500;

/** A group of 500 whose texts are these, of which 100 are kept. */
function groupOf(text: string, message: string): Notification {
  const one = notificationOf({ event: { summary: text }, entity: { id: "e", name: text, dimensions: {} } });
  const about = { ...one, rule: { ...one.rule, message } };
  const { group, ...many } = sampleGroup(about, 100);
  if (group === undefined) throw new Error("a sample is a group");
  const alerts = group.alerts.map((alert) => ({ ...alert, headline: text, entity: { ...alert.entity, name: text } }));
  return { ...many, group: { ...group, labels: { cluster: text, site: text }, firing: membersMax, alerts } };
}

/** What a product was sent, and the text in it that it counts. */
const counted: Partial<
  Record<KindName, { textOf: (body: string) => string; size: (body: string) => number; max: number }>
> = {
  teamChat: {
    textOf: (body) => JSON.parse(body).attachments[0].text,
    size: (body) => JSON.parse(body).attachments[0].text.length,
    max: 4000,
  },
  officeChat: {
    textOf(body) {
      const { body: blocks, actions } = JSON.parse(body).attachments[0].content;
      return [blocks[1].text, ...actions.map((action: { url: string }) => action.url)].join("\n\n");
    },
    size: (body) => Buffer.byteLength(body),
    max: 28_000,
  },
  itsm: {
    textOf: (body) => JSON.parse(body).description,
    size: (body) => JSON.parse(body).description.length,
    max: 4000,
  },
};

const texts = {
  escaped: '<a&b> "c" [d] \\e '.repeat(7).trim(),
  Chinese: "磁盘空间不足".repeat(20),
  plain: "disk full ".repeat(12).trim(),
};
const messages = ["", "{{{rule.name}}} in {{{headline}}}{{#lines}}\n{{{.}}}{{/lines}}"];

test.each(
  Object.keys(counted).flatMap((kind) =>
    Object.keys(texts).flatMap((text) => messages.map((message) => [kind, text, message] as const)),
  ),
)("%s says how many of 500 members with %s texts it omits, and links to them: %j", async (kind, text, message) => {
  const { textOf, size, max } = counted[kind as keyof typeof counted] as NonNullable<(typeof counted)[KindName]>;
  place.receiver.answer(successes[kind as keyof typeof successes]);
  const before = place.receiver.received.length;
  const notification = groupOf(texts[text as keyof typeof texts], message);
  expect(await place.send(destinations[kind as KindName](place.receiver.url), { notification })).toMatchObject({
    result: "sent",
  });
  const body = place.receiver.received.slice(before).findLast(({ method }) => method === "POST")?.body ?? "";
  expect(size(body)).toBeLessThanOrEqual(max);
  const shown = textOf(body);
  const left = Number(/and (\d+) more/.exec(shown)?.[1]);
  const lines = shown.split("\n").filter((line) => line.startsWith("ERROR ") && !line.includes("500 firing"));
  expect([left, lines.length]).toEqual([membersMax - lines.length, expect.toSatisfy((count: number) => count >= 1)]);
  // A rule's own message says itself where the link is.
  if (message === "" || kind !== "teamChat") expect(shown).toContain(link);
});
