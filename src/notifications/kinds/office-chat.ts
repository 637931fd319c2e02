import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { OfficeChatDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { cardBytes, escapeCard, markdown } from "../templates/markup.ts";
import { cutText } from "../templates/template.ts";
import { title, titleLines } from "../templates/titles.ts";
import { hasEnded, hasMembers, severityName, summaryText } from "../templates/variables.ts";
import {
  type AttemptOutcome,
  isSuccess,
  notSent,
  refusedOutcome,
  sent,
  type ThreadState,
  told,
  tried,
} from "./attempt-outcome.ts";
import { brokenUrl } from "./checks.ts";
import { linksOf, textLines } from "./default-texts.ts";
import type { DestinationKind, Rendered } from "./kind.ts";
import type { OutboundResponse } from "./outbound.ts";
import { reasonOf } from "./retry.ts";

// Both products take 28 KB with all that surrounds the card.
const cardBytesMax = 27_000;
const titleCharsMax = 256;
/** Each cuts texts by a fifth; after this many, a few characters are left of each. */
const cutStepsMax = 36;

const colours: Readonly<Record<number, string>> = {
  [Severity.CRITICAL]: "attention",
  [Severity.ERROR]: "attention",
  [Severity.WARNING]: "warning",
};

type Card = Rendered<OfficeChatDestination>;

/** The lines of the card: those of the destination, or else what is known. */
function linesOf({ destination, notification, texts }: Card): { title: string; value: string }[] {
  if (destination.facts.length > 0)
    return destination.facts.map(({ name }, i) => ({ title: name, value: texts[`facts[${i}].value`] ?? "" }));
  const { event } = notification;
  const known = [
    ...(event === undefined ? [] : [{ title: "Severity", value: severityName(event.severity) }]),
    ...textLines(notification),
  ];
  return known
    .filter(({ value }) => value.trim() !== "")
    .map(({ title, value }) => ({ title: escapeCard(title), value: escapeCard(value) }));
}

/** The text of the destination is about one match: a summary, or a group, names its members instead. */
function cardMessage({ notification, texts }: Card, bytesMax: number): string {
  const { summary, group, event, rule } = notification;
  if (summary !== undefined) return escapeCard(summaryText(summary, cardBytes, bytesMax));
  if (group !== undefined && hasMembers(notification))
    return titleLines(group, bytesMax, lineBytes).map(escapeCard).join("\n\n");
  return texts.text?.trim() ? texts.text : escapeCard(event?.body.trim() ? event.body : `Rule: ${rule.name}`);
}

/** With the paragraph that it is. */
const lineBytes = (text: string) => cardBytes(text) + cardBytes("\n\n");

function titleOf({ notification }: Card): string {
  const { event } = notification;
  const state = hasEnded(notification) ? "Resolved: " : event === undefined ? "" : `${severityName(event.severity)}: `;
  return `${state}${title(notification)}`;
}

function cardText(card: Card, publicUrl: string, charsMax: number): string {
  const { notification } = card;
  const actions = linksOf(notification, publicUrl).map(({ text, url }) => ({
    type: "Action.OpenUrl",
    title: text,
    url,
  }));
  const cut = (text: string, max = charsMax) => cutText(text, Math.min(max, charsMax));
  const color = notification.clear ? "good" : (colours[notification.event?.severity ?? 0] ?? "default");
  const head = {
    type: "TextBlock",
    text: escapeCard(cut(titleOf(card), titleCharsMax)),
    weight: "bolder",
    size: "medium",
    color,
  };
  const facts = linesOf(card).map(({ title: name, value }) => ({ title: cut(name), value: cut(value) }));
  const content = {
    // Cards above version 1.4 are shown as an error, and the receiver still reports success.
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.2",
    msteams: { width: "full" },
    body: [
      { ...head, wrap: true },
      { type: "TextBlock", text: cut(cardMessage(card, Math.min(cardBytesMax / 2, charsMax / 2))), wrap: true },
      { type: "FactSet", facts },
    ],
    ...(actions.length > 0 && { actions }),
  };
  const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
  return JSON.stringify({ type: "message", attachments: [attachment] });
}

/** The message with its card in this many bytes: its texts are cut, all to one length, until it fits. */
function fitted(card: Card, publicUrl: string, bytesMax: number): string {
  const cutBy = (step: number) => cardText(card, publicUrl, Math.floor(bytesMax * 0.8 ** step));
  const whole = cutBy(0);
  if (Buffer.byteLength(whole) <= bytesMax) return whole;
  // By halves: long texts are written a few times, not at each length.
  let [tooLong, fits, text] = [0, cutStepsMax, cutBy(cutStepsMax)];
  while (fits - tooLong > 1) {
    const step = Math.floor((fits + tooLong) / 2);
    const tried = cutBy(step);
    if (Buffer.byteLength(tried) <= bytesMax) [fits, text] = [step, tried];
    else tooLong = step;
  }
  return text;
}

const isConnector = (url: string) => URL.canParse(url) && new URL(url).hostname.endsWith(".webhook.office.com");

/** The older of the two products says in the text of a 200 what went wrong. */
function connectorOutcome(answer: OutboundResponse, state: ThreadState): AttemptOutcome {
  if (answer.body.trim() === "1") return sent(told(answer), state);
  const [, status] = /HTTP error (\d{3})/.exec(answer.body) ?? [];
  return notSent("officeChat", status === undefined ? "rejected" : reasonOf(Number(status)), told(answer), state);
}

/** A message with an adaptive card, for incoming webhooks of both kinds: connectors and workflows. */
export const officeChat: DestinationKind<OfficeChatDestination> = {
  pace: { tries: 60, perMs: 30_000 },

  templates: ({ text, facts }) => ({
    text: { text, markup: markdown, charsMax: cardBytesMax },
    ...Object.fromEntries(
      facts.map(({ value }, i) => [`facts[${i}].value`, { text: value, markup: markdown, charsMax: cardBytesMax }]),
    ),
  }),

  check: ({ webhookUrl }) => brokenUrl("webhookUrl", webhookUrl),

  compose(card) {
    const lines = linesOf(card).map(({ title, value }) => `${title}: ${value}`);
    return { subject: titleOf(card), body: [cardMessage(card, cardBytesMax / 2), ...lines].join("\n") };
  },

  send(sending, { outbound, publicUrl, nowMs }) {
    const { destination, state, signal } = sending;
    const post = (bytesMax: number) =>
      outbound.guarded({
        method: "POST",
        url: destination.webhookUrl,
        // Without the character set the connector counts two bytes a character.
        headers: { "content-type": "application/json; charset=utf-8" },
        body: fitted(sending, publicUrl, bytesMax),
        signal,
      });
    return tried("officeChat", state, async () => {
      const first = await post(cardBytesMax);
      const answer = first.status === 413 ? await post(cardBytesMax / 2) : first;
      if (!isSuccess(answer)) return refusedOutcome("officeChat", answer, state, nowMs());
      return isConnector(destination.webhookUrl) ? connectorOutcome(answer, state) : sent(told(answer), state);
    });
  },
};
