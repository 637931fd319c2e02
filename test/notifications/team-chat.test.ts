import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { type Answerer, answering } from "../support/receivers.ts";
import { destinations, fileSite, secrets, successes, type TypeInit } from "./kinds.ts";
import { notificationOf } from "./notifications.ts";

const place = await fileSite(successes.teamChat);

const teamChat = (value: object = {}): TypeInit => ({
  case: "teamChat",
  value: { channel: "ops", token: secrets.token, ...value },
});
const posted = () =>
  place.receiver.received.map(({ method, path, headers, body }) => {
    expect(`${method} ${path}`).toBe("POST /api/chat.postMessage");
    expect(headers.authorization).toBe(`Bearer ${secrets.token}`);
    expect(headers["content-type"]).toBe("application/json; charset=utf-8");
    return JSON.parse(body);
  });
const withMessage = (message: string, changes: Parameters<typeof notificationOf>[0] = {}) => {
  const notification = notificationOf(changes);
  return { notification: { ...notification, rule: { ...notification.rule, message } } };
};

test("the rule's message is posted to the channel", async () => {
  const outcome = await place.send(teamChat());
  expect(outcome).toMatchObject({ result: "sent", state: { ts: "1503435956.000247", channelId: "C024BE91L" } });
  expect(posted()).toEqual([
    {
      channel: "ops",
      unfurl_links: false,
      attachments: [
        {
          color: "#f46036",
          text: "Disk /var is 97 % full on web-1",
          fallback: "disk-full on web-1: Disk /var is 97 % full",
          mrkdwn_in: ["text"],
        },
      ],
    },
  ]);
});

test.each([
  ["repeat", false, "Again"],
  ["acknowledged", false, "Acknowledged"],
  ["unacknowledged", false, "No longer acknowledged"],
  ["severity", false, "Severity is now ERROR"],
] as const)("what follows goes into the thread, by the channel's id: %s", async (occasion, clear, footer) => {
  const state = { ts: "1.2", channelId: "C1" };
  const outcome = await place.send(teamChat(), { notification: notificationOf({ occasion, clear }), state });
  expect(outcome.state).toEqual(state);
  expect(posted()[0]).toMatchObject({ channel: "C1", thread_ts: "1.2", attachments: [{ footer }] });
});

test("the end edits the thread's first message, and answers it", async () => {
  const state = { ts: "1.2", channelId: "C1", rule: "page-storage" };
  const notification = notificationOf({ occasion: "clear", clear: true });
  expect(await place.send(teamChat(), { notification, state })).toMatchObject({ result: "sent", state });
  const [edit, reply] = place.receiver.received.map(({ path, body }) => ({ path, ...JSON.parse(body) }));
  const attachments = [expect.objectContaining({ color: "#2eb67d", footer: "Resolved" })];
  expect(edit).toEqual({ path: "/api/chat.update", channel: "C1", ts: "1.2", attachments });
  expect(reply).toMatchObject({ path: "/api/chat.postMessage", channel: "C1", thread_ts: "1.2", attachments });
});

test("the end of another rule's match answers the first message, and does not edit it", async () => {
  const notification = notificationOf({ occasion: "clear", clear: true });
  await place.send(teamChat(), { notification, state: { ts: "1.2", channelId: "C1", rule: "warn-storage" } });
  expect(posted()).toMatchObject([{ channel: "C1", thread_ts: "1.2" }]);
});

test.each<[what: string, answerer: Answerer]>([
  ["is refused", answering(200, JSON.stringify({ ok: false, error: "edit_window_closed" }))],
  ["is cut off", (_request, _response, socket) => void socket.destroy()],
])("an end whose edit %s is sent all the same", async (_what, refuse) => {
  place.receiver.answer((request, response, socket) => {
    const answerer = request.path.endsWith("chat.postMessage") ? successes.teamChat : refuse;
    return answerer(request, response, socket);
  });
  const notification = notificationOf({ occasion: "clear", clear: true });
  const outcome = await place.send(teamChat(), {
    notification,
    state: { ts: "1.2", channelId: "C1", rule: "page-storage" },
  });
  expect(outcome.result).toBe("sent");
});

test.each(["thread_not_found", "message_not_found", "cannot_reply_to_message"])(
  "when the thread is gone (%s) a new one begins",
  async (error) => {
    const good = successes.teamChat;
    place.receiver.answer((request, response, socket) => {
      if (!request.body.includes("thread_ts")) return good(request, response, socket);
      response.writeHead(200).end(JSON.stringify({ ok: false, error }));
    });
    const outcome = await place.send(teamChat(), { state: { ts: "1.2", channelId: "C1" } });
    expect(outcome).toMatchObject({ result: "sent", state: { ts: "1503435956.000247", channelId: "C024BE91L" } });
    expect(posted().map(({ channel, thread_ts }) => ({ channel, thread_ts }))).toEqual([
      { channel: "C1", thread_ts: "1.2" },
      { channel: "ops", thread_ts: undefined },
    ]);
  },
);

test.each([
  ["of the destination", { color: "#123456" }, Severity.CRITICAL, false, "#123456"],
  ["of CRITICAL", {}, Severity.CRITICAL, false, "#d7263d"],
  ["of WARNING", {}, Severity.WARNING, false, "#ecb22e"],
  ["of INFO", {}, Severity.INFO, false, "#888888"],
  ["of what is over", { color: "#123456" }, Severity.CRITICAL, true, "#2eb67d"],
])("the colour %s", async (_name, value, severity, clear, color) => {
  await place.send(teamChat(value), { notification: notificationOf({ clear, event: { severity } }) });
  expect(posted()[0].attachments[0].color).toBe(color);
});

test.each(["{{{event.body}}}", " \n{{{event.body}}}\u3000"])(
  "%j, which is nothing, is the rule's name",
  async (message) => {
    await place.send(teamChat(), withMessage(message, { event: { body: "" } }));
    expect(posted()[0].attachments[0].text).toBe("page-storage");
  },
);

describe("signs that call people", () => {
  test("come from no value, with two braces or three", async () => {
    const message = "<!here> {{event.summary}} {{{event.summary}}} {{&event.summary}}";
    await place.send(teamChat(), withMessage(message, { event: { summary: "<!channel> & <@U1>" } }));
    const safe = "&lt;!channel&gt; &amp; &lt;@U1&gt;";
    expect(posted()[0].attachments[0]).toMatchObject({
      text: `<!here> ${safe} ${safe} ${safe}`,
      fallback: `disk-full on web-1: ${safe}`,
    });
  });

  test("come from no address of a link", async () => {
    await place.send(teamChat(), withMessage("{{{link}}}", { event: { summary: "a|b <!channel>" } }));
    expect(posted()[0].attachments[0].text).toMatch(/^<https:[^|<>]*\|a\|b &lt;!channel&gt;>$/);
  });
});

describe("a text has 4,000 characters", () => {
  test.each([
    ["x".repeat(5000), `${"x".repeat(3999)}…`],
    ["x".repeat(4000), "x".repeat(4000)],
    [`${"x".repeat(3998)}😀y`, `${"x".repeat(3998)}…`],
    [`${"x".repeat(3997)}&amp;yyy`, `${"x".repeat(3997)}…`],
    [`${"x".repeat(3990)}<https://example.com/a|b>`, `${"x".repeat(3990)}…`],
  ])("and is never cut within a character, an escape or a link", async (message, text) => {
    await place.send(teamChat(), withMessage(message));
    expect(posted()[0].attachments[0].text).toBe(text);
  });
});

test("an answer without a thread's marks is no state", async () => {
  place.receiver.answer(answering(200, '{"ok":true}'));
  expect(await place.send(teamChat())).toMatchObject({ result: "sent", state: {} });
});

test("what the product says is shown, without the token", async () => {
  const echo: Answerer = ({ headers }, response) =>
    void response.writeHead(200).end(JSON.stringify({ ok: false, error: "invalid_auth", got: headers.authorization }));
  place.receiver.answer(echo);
  const { answer } = await place.send(teamChat());
  expect(answer).toBe('HTTP 200: {"ok":false,"error":"invalid_auth","got":"Bearer ********"}');
});

test("without a rule's message the text is a title, links, and what the title does not say", async () => {
  const { rule } = notificationOf();
  const notification = notificationOf({ rule: { ...rule, message: "" }, event: { metadata: { path: "<a>" } } });
  await place.send(teamChat(), { notification });
  expect(posted()[0].attachments[0].text).toMatch(
    /^ERROR: disk-full on web-1: Disk \/var is 97 % full\n<https:[^|>]+\|Show event> · <https:[^|>]+\|Silence>\nSince: 2026-11-22 09:30:00 UTC\nSeen: 3 times\ntype: storage\nsite: Köln\npath: &lt;a&gt;$/,
  );
});

test("what it would send is its text", async () => {
  const type = create(DestinationTypeSchema, { type: destinations.teamChat("") });
  expect(await compose(type, notificationOf(), place.world)).toEqual({
    subject: "",
    body: "Disk /var is 97 % full on web-1",
  });
});
