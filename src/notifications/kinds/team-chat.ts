import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { TeamChatDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Notification } from "../subject/notification.ts";
import { chat } from "../templates/markup.ts";
import { title } from "../templates/titles.ts";
import {
  type AttemptOutcome,
  isSuccess,
  notSent,
  parsedObject,
  refusedOutcome,
  sent,
  told,
  tried,
} from "./attempt-outcome.ts";
import { defaultMessage, linksOf, occasionText, textLines } from "./default-texts.ts";
import type { DestinationKind, Rendered, Sending } from "./kind.ts";
import { OutboundError, type OutboundResponse } from "./outbound.ts";
import type { FailureReason } from "./retry.ts";

const textCharsMax = 4000;
/** Leaves room for the links. */
const messageCharsMax = 3400;
const linksCharsMax = 590;
const fallbackCharsMax = 300;
const good = "#2eb67d";

const colours: Readonly<Record<number, string>> = {
  [Severity.CRITICAL]: "#d7263d",
  [Severity.ERROR]: "#f46036",
  [Severity.WARNING]: "#ecb22e",
};

/** What the product's own words mean; the others mean that the message itself cannot be posted. */
const meaningOf = (error: string): FailureReason => (Object.hasOwn(meanings, error) && meanings[error]) || "rejected";

const meanings: Readonly<Record<string, FailureReason>> = {
  ratelimited: "rate_limited",
  rate_limited: "rate_limited",
  internal_error: "busy",
  fatal_error: "busy",
  service_unavailable: "busy",
  request_timeout: "busy",
  org_login_required: "busy",
  team_added_to_org: "busy",
  accesslimited: "busy",
  missing_scope: "unauthorized",
  no_permission: "unauthorized",
  not_authed: "unauthorized",
  invalid_auth: "unauthorized",
  account_inactive: "unauthorized",
  token_revoked: "unauthorized",
  token_expired: "unauthorized",
  ekm_access_denied: "unauthorized",
  channel_not_found: "missing",
};

/** The thread's first message is gone, or its channel: another token may be of another team. */
const threadGone = new Set(["channel_not_found", "thread_not_found", "message_not_found", "cannot_reply_to_message"]);

/** Cut between characters as the product counts them: never within an escape or a link. */
function cutChat(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const kept = text
    .slice(0, charsMax - 1)
    .replace(/[\uD800-\uDBFF]$/, "")
    .replace(/&[a-z]{0,3}$/, "")
    .replace(/<[^<>]*$/, "");
  return `${kept}…`;
}

function colourOf({ color }: TeamChatDestination, { clear, event }: Notification): string {
  if (clear) return good;
  return color || (colours[event?.severity ?? Severity.ERROR] ?? "#888888");
}

/** What a rule without a message says beneath the title: what is known, and where to go on, the console's page first. */
function details(notification: Notification, publicUrl: string): { links: string; facts: string[] } {
  if (notification.rule.message !== "" || notification.summary !== undefined) return { links: "", facts: [] };
  const facts = textLines(notification).map(({ title, value }) => chat.double(`${title}: ${value}`));
  let links = "";
  for (const { text, url } of linksOf(notification, publicUrl)) {
    const next = `${links}${links === "" ? "" : " · "}${chat.link(url, text)}`;
    if (next.length <= linksCharsMax) links = next;
  }
  return { links, facts };
}

/** One that renders to nothing would be refused: it is the rule's name. What is too long leaves room for the link. */
function attachmentText({ notification, texts }: Rendered<TeamChatDestination>, publicUrl: string): string {
  const message = texts.message?.trim() ? texts.message : chat.double(notification.rule.name);
  const { links, facts } = details(notification, publicUrl);
  if (links === "") return cutChat([message, ...facts].join("\n"), textCharsMax);
  const fitting = cutChat(message, textCharsMax - links.length - 1);
  return cutChat([fitting, links, ...facts].join("\n"), textCharsMax);
}

function messageOf(sending: Sending<TeamChatDestination>, publicUrl: string) {
  const { destination, notification, state } = sending;
  const occasion = occasionText(notification);
  const attachment = {
    color: colourOf(destination, notification),
    text: attachmentText(sending, publicUrl),
    fallback: cutChat(chat.double(title(notification)), fallbackCharsMax),
    mrkdwn_in: ["text"],
    ...(occasion !== "" && { footer: occasion }),
  };
  // A thread is found by the channel's id; its name may have been given to another one.
  const thread = state.ts === undefined ? {} : { thread_ts: state.ts };
  return { channel: state.channelId ?? destination.channel, attachments: [attachment], unfurl_links: false, ...thread };
}

/** Tells whether what a thread's first message reports is over: another rule's match may go on in the thread. */
const isOver = ({ notification, state }: Sending<TeamChatDestination>) =>
  notification.clear && state.channelId !== undefined && state.rule === notification.rule.name;

/** Passes over a receiver that does not answer. */
function passOver(error: unknown): void {
  if (!(error instanceof OutboundError)) throw error;
}

/** Writes the thread's first message as it reads once all is over. */
function editOf(sending: Sending<TeamChatDestination>, publicUrl: string) {
  const { attachments } = messageOf(sending, publicUrl);
  return { channel: sending.state.channelId, ts: sending.state.ts, attachments };
}

function judged(
  answer: OutboundResponse,
  { state, notification }: Sending<TeamChatDestination>,
  nowMs: number,
): AttemptOutcome {
  if (!isSuccess(answer)) return refusedOutcome("teamChat", answer, state, nowMs);
  const body = parsedObject(answer.body);
  if (typeof body?.ok !== "boolean") return notSent("teamChat", "unreadable", told(answer), state);
  if (!body.ok) return notSent("teamChat", meaningOf(String(body.error)), told(answer), state);
  const { ts, channel } = body;
  if (state.ts !== undefined || typeof ts !== "string" || typeof channel !== "string") return sent(told(answer), state);
  return sent(told(answer), { ts, channelId: channel, rule: notification.rule.name });
}

/** A message of the app's bot; what follows about the same subject goes into its thread. */
export const teamChat: DestinationKind<TeamChatDestination> = {
  pace: { tries: 1, perMs: 1000 },

  place: ({ channel }) => channel,

  templates: (_destination, message) => ({
    message: { text: message || defaultMessage, markup: chat, fitting: messageCharsMax },
  }),

  check: ({ channel, token, credentialId, color }) => [
    ...(channel.startsWith("#") ? [{ path: "channel", rule: "must be given without the number sign" }] : []),
    ...((token === "") === (credentialId === "")
      ? [{ path: "token", rule: "must be given, or else credentialId" }]
      : []),
    ...(/^(?:#(?:[\da-f]{3}|[\da-f]{6})|good|warning|danger)?$/i.test(color)
      ? []
      : [{ path: "color", rule: "must be an HTML colour code such as #d7263d" }]),
  ],

  compose: (rendered, { publicUrl }) => ({ subject: "", body: attachmentText(rendered, publicUrl) }),

  send: (sending, { outbound, teamChatUrl, publicUrl, nowMs }) =>
    tried("teamChat", sending.state, async () => {
      const post = (message: object) => call("chat.postMessage", message);
      const call = (method: string, message: object) =>
        outbound.trusted({
          method: "POST",
          url: `${teamChatUrl}/${method}`,
          headers: {
            authorization: `Bearer ${sending.destination.token}`,
            "content-type": "application/json; charset=utf-8",
          },
          body: JSON.stringify(message),
          signal: sending.signal,
        });
      // The reply is what counts: that the first message turns green is worth no second try.
      if (isOver(sending)) await call("chat.update", editOf(sending, publicUrl)).catch(passOver);
      const answer = await post(messageOf(sending, publicUrl));
      const gone = sending.state.ts !== undefined && threadGone.has(String(parsedObject(answer.body)?.error));
      if (!gone) return judged(answer, sending, nowMs());
      const anew = { ...sending, state: {} };
      return judged(await post(messageOf(anew, publicUrl)), anew, nowMs());
    }),
};
