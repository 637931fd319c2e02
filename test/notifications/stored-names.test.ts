import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WebhookDestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { htmlMail } from "../../src/notifications/kinds/default-mail.ts";
import { chat, html, markdown } from "../../src/notifications/templates/markup.ts";
import { newSteps, parseTemplate, render } from "../../src/notifications/templates/template.ts";
import { variablesOf } from "../../src/notifications/templates/variables.ts";
import { answering } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { secrets, site } from "./kinds.ts";
import { notificationOf } from "./notifications.ts";

/** What an agent, or any key that may write, can store as a name. */
const nasty = [
  `"><script>alert(1)</script><img src=x onerror=alert(1)>`,
  "</td></table><a href='https://evil.example'>log in</a>",
  "<!channel> <@U1> <https://evil.example|log in>",
  "[log in](https://evil.example) ![x](https://evil.example/x.png)",
  "\u202Eright to left\u202C \u2066x\u2069",
  "😀".repeat(255),
];
const notificationWith = (text: string) =>
  notificationOf({
    event: { name: text, summary: text, body: text, type: text },
    entity: { name: text, dimensions: { [text]: text } },
    rule: { name: text },
    trigger: { name: text },
  } as never);
const url = "https://belfry.example.com";
const destination = { name: "webhook", desc: WebhookDestinationSchema, message: create(WebhookDestinationSchema) };
const tagsOf = (text: string) => text.match(/<[^>]*>/g) ?? [];

test.each(nasty)("name %# makes no tag in a mail", (text) => {
  const plain = notificationWith("x");
  // Texts show on lines of their own in as many elements, whatever they say.
  expect(tagsOf(htmlMail(notificationWith(text), text, url)).map((tag) => tag.replace(/href="[^"]*"/, "href"))).toEqual(
    tagsOf(htmlMail(plain, "x", url)).map((tag) => tag.replace(/href="[^"]*"/, "href")),
  );
});

test.each(nasty)("name %# makes no link and mentions no one where two braces hold it", async (text) => {
  const all = "{{event.name}} {{event.summary}} {{entity.name}} {{rule.name}}";
  const rendered = (markup: typeof html) => {
    const variables = variablesOf(notificationWith(text), destination, markup, url);
    const steps = newSteps();
    return render(parseTemplate(all, steps), variables, markup, { steps, pace: () => undefined });
  };
  expect(tagsOf(await rendered(html))).toEqual([]);
  expect(await rendered(chat)).not.toMatch(/[<>]/);
  expect(await rendered(markdown)).not.toMatch(/(?<!\\)[[\]]|[<>]/);
});

test("nor does it on a card, where no template holds it", async () => {
  await using place = await site();
  place.receiver.answer(answering(202));
  for (const text of nasty) {
    const value = { webhookUrl: `${place.receiver.url}/${secrets.webhookPath}`, text: "{{event.summary}}" };
    await place.send({ case: "officeChat", value } as never, { notification: notificationWith(text) });
    const { body } = JSON.parse(place.receiver.received.at(-1)?.body ?? "").attachments[0].content;
    const [title, own, { facts }] = body;
    const texts = [title.text, own.text, ...facts.map((fact: { value: string }) => fact.value)];
    for (const shown of texts) expect(shown).not.toMatch(/(?<!\\)[[\]]/);
  }
});

test("pages hold no stored name, and errors that quote one are no pages", async () => {
  const server = await testServer();
  const tenant = await testTenant(server.database.sql);
  const call = v1(server.url, tenant.headers);
  const name = `${nasty[0]} stored`;
  const group = { name, cloud_roles: ["manager"] };
  const dimensions = { [name]: name };
  await call("POST", "/v1/data-receiver/models", {
    models: [{ timestamp: `${Date.now()}`, dimensions, metadataFields: { name } }],
  });
  await call("POST", "/v1/user-mgmt/end-user-groups", { group });
  for (const path of ["/", "/docs", "/openapi.json"]) {
    const page = await fetch(server.url + path, { headers: { accept: "text/html", ...tenant.headers } });
    expect(page.status).toBe(200);
    expect(await page.text()).not.toContain("onerror=alert");
  }
  const quoting = [
    [`/v1/user-mgmt/end-user-groups/${encodeURIComponent(name)}x`, "GET"],
    [`/v1/dictionary/metrics/${encodeURIComponent(name)}`, "GET"],
    [`/${encodeURIComponent(name)}`, "GET"],
    [`/v1/events?x=${encodeURIComponent(name)}`, "GET"],
  ] as const;
  for (const [path, method] of quoting) {
    const answer = await fetch(server.url + path, { method, headers: { ...tenant.headers, accept: "text/html" } });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    const isPage = answer.headers.get("content-type")?.startsWith("text/html");
    if (isPage) expect(await answer.text()).not.toContain("onerror=alert");
    else expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  }
});
