import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { KindName } from "../../src/notifications/kinds/retry.ts";
import type { Notification } from "../../src/notifications/subject/notification.ts";
import { validateItem } from "../../src/rpc/validate.ts";
import { decodedWords, mailParts } from "../support/mail-parts.ts";
import { type MailReceiver, mailReceiver } from "../support/receivers.ts";
import { diskFull, groupOf } from "./disk-alerts.ts";
import { destinations, type Site, secrets, site, successes, type TypeInit } from "./kinds.ts";
import { nastyTexts } from "./nasty-texts.ts";

/*
 * Default messages hold what anyone who can send an event has written. Whatever that is, each product takes the message, it looks like
 * what it is, and nobody is called who was not to be.
 */

let relay: MailReceiver;
let place: Site;
beforeAll(async () => {
  relay = await mailReceiver();
  const url = `smtp://127.0.0.1:${relay.port}?ignoreTLS=true`;
  place = await site({ env: { BELFRY_SMTP_URL: url, BELFRY_SMTP_SENDER: "belfry@example.com" } });
});
afterAll(async () => {
  await place[Symbol.asyncDispose]();
  await relay[Symbol.asyncDispose]();
});

/** An alert all of whose texts are this one, its end, and a group of such alerts. */
function notificationsOf(text: string): Notification[] {
  const { event, entity, ...alert } = diskFull("web-1", "/var", 93);
  if (event === undefined) throw new Error("no event");
  const labels = { [text]: text, cluster: text };
  const annotations = { "annotation.summary": text, "annotation.runbook_url": text, generatorURL: text };
  const metadata = { ...event.metadata, ...labels, ...annotations };
  const firing = {
    ...alert,
    event: { ...event, name: text, type: text, summary: text, body: text, metadata },
    entity: { ...entity, name: text, dimensions: { host: text, [text]: text } },
  };
  const members = [text, "web-1"].map((host) => [host, text, 93, false] as const);
  return [firing, { ...firing, occasion: "clear", clear: true }, groupOf(members, text)];
}

/** Invisible marks that turn the direction of what follows. */
const turns = /[\u202a-\u202e\u2066-\u2069]/;
const lone = (text: string) => text.includes("\ud800");

interface Sent {
  readonly body: string;
  readonly text: string;
  readonly notification: Notification;
}

// biome-ignore lint/suspicious/noExplicitAny: JSON of several products
const json = (body: string): any => JSON.parse(body);
/** All texts that a JSON value holds. */
const textsIn = (value: unknown): string[] =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, of]) => [name, ...textsIn(of)])
      : [];
const characters = (text: string) => [...text].length;
/** Links of a message: to the console, to what the group shares, or to what the sender has named, whole. */
const isGood = (url: string, text: string) =>
  /^https:\/\/(?:belfry|wiki)\.example\.com\//.test(url) || url === text.toWellFormed();

const unescaped = (text: string) =>
  text.replaceAll("%7C", "|").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

function checkSlack({ body, text: given }: Sent) {
  const { attachments, ...message } = json(body);
  expect(Object.keys(message).sort()).toEqual(["channel", "unfurl_links"]);
  expect(attachments).toHaveLength(1);
  const [{ text, fallback }] = attachments;
  expect(text.trim()).not.toBe("");
  expect(text.length).toBeLessThanOrEqual(4000);
  expect(fallback.length).toBeLessThanOrEqual(300);
  for (const shown of [text, fallback]) {
    expect(shown).not.toMatch(turns);
    // Whatever stands in angle brackets is a mention or a link: ours alone.
    const links = [...shown.matchAll(/<([^<>|]*)(?:\|[^<>]*)?>/g)].map(([, url = ""]) => url);
    expect(shown.replace(/<https:\/\/[^<>|]*\|[^<>]*>/g, "")).not.toMatch(/[<>]/);
    for (const url of links) expect(isGood(unescaped(url), given)).toBe(true);
    expect(shown.replace(/&(?:amp|lt|gt);/g, "")).not.toContain("&");
  }
}

function checkTeams({ body, text }: Sent) {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(27_000);
  const [{ content }] = json(body).attachments;
  expect(content.msteams).toEqual({ width: "full" });
  const [head, message, { facts }] = content.body;
  expect(head.text.length).toBeLessThanOrEqual(600);
  for (const shown of [head.text, message.text, ...textsIn(facts)]) {
    expect(shown).not.toMatch(turns);
    expect(shown).not.toMatch(/(?<!\\)\]\s*\(/);
  }
  for (const { url } of content.actions) expect(isGood(url, text)).toBe(true);
}

function checkPagerDuty({ body }: Sent) {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(512_000);
  const { payload, event_action, dedup_key, links } = json(body);
  expect(dedup_key).toMatch(/^.{1,255}$/);
  if (event_action === "resolve") return expect(payload).toBeUndefined();
  expect(payload.summary.trim()).not.toBe("");
  expect(characters(payload.summary)).toBeLessThanOrEqual(1024);
  expect(payload.source.trim()).not.toBe("");
  for (const { href } of links) expect(href).toMatch(/^https?:\/\/\S+$/);
  return expect(payload.summary).not.toMatch(turns);
}

function checkServiceNow({ body }: Sent) {
  if (body === "") return; // the search before
  const { short_description, description, work_notes, close_notes } = json(body);
  expect(short_description.trim()).not.toBe("");
  expect(characters(short_description)).toBeLessThanOrEqual(160);
  expect(short_description).not.toMatch(/[\r\n]/);
  for (const long of [description, work_notes, close_notes].filter((each) => each !== undefined)) {
    expect(characters(long)).toBeLessThanOrEqual(4000);
    expect(long).not.toMatch(turns);
  }
  if (description !== undefined) expect(description).toContain("https://belfry.example.com/console/#/");
}

function checkWebhook({ body, notification, text }: Sent) {
  const { message, event, clear } = json(body);
  expect(message.trim()).not.toBe("");
  expect(message).not.toMatch(turns);
  expect(clear).toBe(notification.clear);
  if (event !== null && !lone(text)) expect(event.summary).toBe(text);
}

const unescapedHtml = (text: string) => unescaped(text.replaceAll("&quot;", '"').replaceAll("&#39;", "'"));

const ownHeaders = /^(?:Auto-Submitted|Content-Type|Date|From|MIME-Version|Message-ID|Subject|To): /;

function checkMail({ body, text }: Sent) {
  for (const line of body.split("\r\n")) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(998);
  const { headers, parts } = mailParts(body);
  for (const header of headers) expect(header).toMatch(ownHeaders);
  expect(headers).toContain("To: ops@example.com");
  const subject = decodedWords(headers.find((header) => header.startsWith("Subject: ")) ?? "").slice(9);
  expect(subject.trim()).not.toBe("");
  expect(subject.length).toBeLessThanOrEqual(200);
  expect(subject).not.toMatch(/\p{Cc}/u);
  expect(parts).toHaveLength(2);
  const [plain = "", page = ""] = parts;
  for (const shown of [subject, plain, page]) expect(shown).not.toMatch(turns);
  const tags = new Set([...page.matchAll(/<(\/?[a-z!]+)/gi)].map(([, tag]) => tag));
  const ours = ["!DOCTYPE", "html", "head", "meta", "body", "div", "p", "br", "table", "tr", "td", "a"];
  expect([...tags].filter((tag) => !ours.includes((tag as string).replace("/", "")))).toEqual([]);
  for (const [, href = ""] of page.matchAll(/href="([^"]*)"/g)) expect(isGood(unescapedHtml(href), text)).toBe(true);
}

const kinds: Readonly<Record<Exclude<KindName, "event">, (sent: Sent) => void>> = {
  email: checkMail,
  teamChat: checkSlack,
  officeChat: checkTeams,
  incidentPaging: checkPagerDuty,
  itsm: checkServiceNow,
  webhook: checkWebhook,
};

/** A destination without texts of its own. */
function plain(kind: KindName): TypeInit {
  const { value, ...type } = destinations[kind](place.receiver.url) as { value: object; case: KindName };
  const own = kind === "officeChat" ? { text: "" } : kind === "itsm" ? { shortDescription: "" } : {};
  return { ...type, value: { ...value, ...own } } as TypeInit;
}

describe.each(Object.keys(kinds) as (keyof typeof kinds)[])("%s", (kind) => {
  test.each(Object.entries(nastyTexts))("%s", async (_what, text) => {
    if (kind !== "email") place.receiver.answer(successes[kind]);
    for (const notification of notificationsOf(text)) {
      place.receiver.received.length = 0;
      relay.mails.length = 0;
      const outcome = await place.send(plain(kind), { notification });
      expect(outcome).toMatchObject({ result: "sent" });
      const bodies =
        kind === "email" ? relay.mails.map(({ raw }) => raw) : place.receiver.received.map(({ body }) => body);
      expect(bodies.length).toBeGreaterThan(0);
      for (const body of bodies) {
        if (!lone(text) && kind !== "email" && body !== "")
          for (const each of textsIn(json(body))) expect(each.isWellFormed()).toBe(true);
        kinds[kind]({ body, text, notification });
      }
      const secret = Object.values(secrets).find((each) => JSON.stringify(outcome).includes(each));
      expect(secret).toBe(undefined);
    }
  });
});

describe("event", () => {
  const texts = { nameTemplate: "{{{title}}}", typeTemplate: "derived", summaryTemplate: "{{{title}}}" };
  const type = () => {
    const { value, ...kind } = destinations.event("") as { value: object; case: "event" };
    return { ...kind, value: { ...value, ...texts, bodyTemplate: "{{{event.body}}}" } } as TypeInit;
  };

  test.each(Object.entries(nastyTexts))("%s", async (_what, text) => {
    for (const whole of notificationsOf(text)) {
      place.events.length = 0;
      // An entity's dimensions were checked when it came; the event is made on the same.
      const notification = { ...whole, entity: { ...whole.entity, dimensions: { host: "web-1" } } };
      expect(await place.send(type(), { notification })).toMatchObject({ result: "sent" });
      const [{ item }] = place.events as [(typeof place.events)[0]];
      const { name, summary, body, dimensions } = item;
      const message = create(EventSchema, { name, type: item.type, summary, body, dimensions, timestamp: item.timeMs });
      expect(validateItem(EventSchema, message, "event")).toEqual([]);
      expect(name).not.toMatch(/[\r\n]/);
    }
  });
});
