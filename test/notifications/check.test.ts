import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { checkDestination, rateLimitOf } from "../../src/notifications/kinds/kinds.ts";
import type { KindName } from "../../src/notifications/kinds/retry.ts";

type Type = NonNullable<MessageInitShape<typeof DestinationTypeSchema>["type"]>;

const secret = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString("base64")}`;
const email = (value: object): Type => ({ case: "email", value: { to: "ops@example.com", ...value } });
const webhook = (value: object): Type => ({ case: "webhook", value: { url: "https://hook.example.com/", ...value } });
const teamChat = (value: object): Type => ({ case: "teamChat", value: { channel: "ops", token: "xoxb-1", ...value } });
const officeChat = (value: object): Type => ({
  case: "officeChat",
  value: { webhookUrl: "https://example.webhook.office.com/x", text: "{{event.name}}", ...value },
});
const event = (value: object): Type => ({
  case: "event",
  value: { nameTemplate: "a", typeTemplate: "b", summaryTemplate: "c", severity: Severity.ERROR, ...value },
});
const itsm = (value: object): Type => ({ case: "itsm", value: { baseUrl: "https://itsm.example.com", ...value } });
const basic = { authorization: { case: "basic", value: { username: "u", password: "p" } } };
const oauth = {
  clientId: "c",
  clientSecret: "s",
  refreshToken: "r",
  tokenUrl: "https://itsm.example.com/oauth_token.do",
  authUrl: "https://itsm.example.com/oauth_auth.do",
};

const paths = async (type: Type) =>
  (await checkDestination(create(DestinationTypeSchema, { type }), "tenant")).map(({ path }) => path);

describe("a good destination breaks no rule", () => {
  const good: [string, Type][] = [
    ["e-mail", email({ subject: "{{event.name}}", body: "<p>{{{link}}}</p>" })],
    ["e-mail to an international address", email({ to: "jürgen@müller.example" })],
    ["event", event({ bodyTemplate: "{{#event}}{{body}}{{/event}}" })],
    ["office chat", officeChat({ facts: [{ name: "Host", value: "{{entity.name}}" }] })],
    ["incident paging", { case: "incidentPaging", value: { integrationKey: "k".repeat(32) } }],
    ["incident paging by a credential", { case: "incidentPaging", value: { credentialId: "c1" } }],
    ["ITSM", itsm({ ...basic, closeState: 7, closeCode: "Solved", closeNotes: "{{rule.name}}" })],
    ["ITSM with OAuth", itsm({ authorization: { case: "oauth", value: oauth } })],
    ["ITSM by a credential", itsm({ credentialId: "c1" })],
    ["team chat", teamChat({ color: "#d7263d" })],
    ["team chat by a credential", teamChat({ token: "", credentialId: "c1" })],
    ["webhook", webhook({ signingSecret: secret(32), headers: { authorization: "Bearer x" } })],
    ["webhook with two secrets", webhook({ signingSecret: `${secret(24)} ${secret(64)}` })],
    ["webhook with tags in its address", webhook({ url: "https://{{entity.dimensions.host}}/{{event.name}}" })],
    ["webhook whose address is a tag", webhook({ url: "{{{entity.dimensions.hook}}}" })],
    ["webhook by plain HTTP", webhook({ url: "http://hook.example.com:8080/x" })],
  ];
  test.each(good)("%s", async (_name, type) => expect(await paths(type)).toEqual([]));
});

describe("a mistake is named by its path", () => {
  const bad: [string, Type, string[]][] = [
    ["a subject with an open tag", email({ subject: "{{event.name" }), ["email.subject"]],
    ["a body with an open section", email({ body: "{{#event}}" }), ["email.body"]],
    ["two addresses", email({ to: "a@example.com, b@example.com" }), ["email.to"]],
    ["an address with a name", email({ to: "A <a@example.com>" }), ["email.to"]],
    ["an address without a domain", email({ to: "ops" }), ["email.to"]],
    ["the name of an event", event({ nameTemplate: "{{/a}}" }), ["event.nameTemplate"]],
    ["the type of an event", event({ typeTemplate: "{{a" }), ["event.typeTemplate"]],
    ["the summary of an event", event({ summaryTemplate: "{{#a}}" }), ["event.summaryTemplate"]],
    ["the body of an event", event({ bodyTemplate: "{{> a}}" }), ["event.bodyTemplate"]],
    ["an event without severity", event({ severity: Severity.DEFAULT }), ["event.severity"]],
    ["the text of a card", officeChat({ text: "{{a" }), ["officeChat.text"]],
    ["the second fact", officeChat({ facts: [{}, { name: "x", value: "{{a" }] }), ["officeChat.facts[1].value"]],
    ["the address of a channel", officeChat({ webhookUrl: "ftp://example.com" }), ["officeChat.webhookUrl"]],
    ["a missing key", { case: "incidentPaging", value: {} }, ["incidentPaging.integrationKey"]],
    [
      "a key and a credential",
      { case: "incidentPaging", value: { integrationKey: "k", credentialId: "c" } },
      ["incidentPaging.integrationKey"],
    ],
    ["no authorization", itsm({}), ["itsm.basic"]],
    ["the address of an instance", itsm({ ...basic, baseUrl: "itsm.example.com" }), ["itsm.baseUrl"]],
    [
      "both addresses of OAuth",
      itsm({ authorization: { case: "oauth", value: { ...oauth, tokenUrl: "x", authUrl: "javascript:alert(1)" } } }),
      ["itsm.oauth.tokenUrl", "itsm.oauth.authUrl"],
    ],
    ["a short description", itsm({ ...basic, shortDescription: "{{a" }), ["itsm.shortDescription"]],
    ["close notes", itsm({ ...basic, closeNotes: "{{a" }), ["itsm.closeNotes"]],
    ["a close state", itsm({ ...basic, closeState: -1 }), ["itsm.closeState"]],
    ["a channel with its sign", teamChat({ channel: "#ops" }), ["teamChat.channel"]],
    ["a missing token", teamChat({ token: "" }), ["teamChat.token"]],
    ["a colour", teamChat({ color: "reddish" }), ["teamChat.color"]],
    ["an address with a password", webhook({ url: "https://u:p@example.com/" }), ["webhook.url"]],
    ["an address of another kind", webhook({ url: "file:///etc/passwd" }), ["webhook.url"]],
    ["an address of another kind with a tag", webhook({ url: "gopher://{{a}}/" }), ["webhook.url"]],
    ["an address with an open tag", webhook({ url: "https://example.com/{{a" }), ["webhook.url"]],
    ["a secret that is too short", webhook({ signingSecret: secret(23) }), ["webhook.signingSecret"]],
    ["a secret that is too long", webhook({ signingSecret: secret(65) }), ["webhook.signingSecret"]],
    ["a secret that is no base64", webhook({ signingSecret: "whsec_***" }), ["webhook.signingSecret"]],
    ["three secrets", webhook({ signingSecret: Array(3).fill(secret(32)).join(" ") }), ["webhook.signingSecret"]],
    ["a header of the service's", webhook({ headers: { "Webhook-Id": "x" } }), ['webhook.headers["Webhook-Id"]']],
    [
      "a header of HTTP's",
      webhook({ headers: { "Transfer-Encoding": "x" } }),
      ['webhook.headers["Transfer-Encoding"]'],
    ],
    ["the name of a header", webhook({ headers: { "a b": "x" } }), ['webhook.headers["a b"]']],
    ["the value of a header", webhook({ headers: { a: "☃" } }), ['webhook.headers["a"]']],
  ];
  test.each(bad)("%s", async (_name, type, wanted) => expect(await paths(type)).toEqual(wanted));
});

test.each([
  ["team chat: one message a second", "teamChat", { tries: 1, perMs: 1000 }],
  ["office chat: 60 cards in half a minute", "officeChat", { tries: 60, perMs: 30_000 }],
  ["incident paging: 120 calls a minute", "incidentPaging", { tries: 120, perMs: 60_000 }],
  ["webhooks: none", "webhook", undefined],
] satisfies [string, KindName, object | undefined][])("the product's own limit of %s", (_name, kind, pace) =>
  expect(rateLimitOf(kind)).toEqual(pace),
);
