import type { EmailDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { html, plainText } from "../templates/markup.ts";
import { cutText } from "../templates/template.ts";
import { withoutBreaks } from "../templates/titles.ts";
import { type AttemptOutcome, notSent, type Recipient, sent, sentReason } from "./attempt-outcome.ts";
import { htmlMail, textMail } from "./default-mail.ts";
import { defaultMessage } from "./default-texts.ts";
import type { DestinationKind, Rendered, Sending } from "./kind.ts";
import type { Mail, Relay } from "./mail-relay.ts";
import type { FailureReason } from "./retry.ts";

// A line of a mail has at most 998 bytes; people read the first fifty characters.
const subjectCharsMax = 200;

/** Whether a body is written as HTML: it begins with a tag. What values hold makes no difference. */
const isHtml = ({ body }: EmailDestination) => /^\s*<[a-z!]/i.test(body);

const subjectOf = ({ notification, texts }: Rendered<EmailDestination>) =>
  cutText(withoutBreaks(texts.subject ?? "") || withoutBreaks(notification.rule.name), subjectCharsMax);

function contentOf(rendered: Rendered<EmailDestination>, publicUrl: string): { text?: string; html?: string } {
  const { destination, notification, texts } = rendered;
  if (destination.body === "") {
    const message = texts.message ?? "";
    return { text: textMail(notification, message, publicUrl), html: htmlMail(notification, message, publicUrl) };
  }
  return isHtml(destination) ? { html: texts.body ?? "" } : { text: texts.body ?? "" };
}

/** nodemailer's code and the relay's number: only the number reports what is for good. */
function reasonOf({ code, responseCode = 0 }: { code?: string; responseCode?: number }): FailureReason {
  if (responseCode === 535 || responseCode === 530 || responseCode === 534) return "unauthorized";
  if (responseCode >= 500) return "rejected";
  if (responseCode >= 400) return "busy";
  if (code === "ETIMEDOUT" || code === "EABORT") return "timeout";
  if (code === "EDNS") return "unresolved";
  if (code === "ECONNECTION" || code === "ESOCKET" || code === "ETLS" || code === "EPROTOCOL") return "network";
  return code === "EAUTH" || code === "ENOAUTH" ? "unauthorized" : "bad_request";
}

/** What is for good, unless a person asks for it again. */
const refusals = new Set<string>(["rejected", "bad_request"] satisfies FailureReason[]);
/** Whether an address is not tried again. */
const isDone = ({ reason }: Recipient) => reason === sentReason || refusals.has(reason);
/** They are about the relay, and no other address would fare better now. */
const ofRelay = new Set<string>(["network", "timeout", "unresolved", "unauthorized"] satisfies FailureReason[]);

interface Tried extends Recipient {
  readonly reason: FailureReason | typeof sentReason;
}

/** Sends a mail to one address. @throws what is no error of the relay */
async function sendOne(relay: Relay, mail: Mail, signal: AbortSignal): Promise<Tried> {
  const address = mail.to;
  try {
    return { address, reason: sentReason, answer: await relay.send(mail, signal) };
  } catch (error) {
    const { code, responseCode, response } = error as { code?: string; responseCode?: number; response?: string };
    if (code === undefined && responseCode === undefined) throw error;
    const reason = reasonOf({ ...(code && { code }), ...(responseCode && { responseCode }) });
    return { address, reason, answer: response ?? `no answer of the mail relay (${code})` };
  }
}

/** Says what came of several addresses: first what is to be known of those that have no mail. */
function answerOf(addresses: readonly string[], ended: ReadonlyMap<string, Recipient>): string {
  const failed = [...ended.values()].filter(({ reason }) => reason !== sentReason);
  const untried = addresses.length - ended.size;
  return [
    ...failed.map(({ address, answer }) => `${address}: ${answer}`),
    ...(untried > 0 ? [`not tried: ${untried}`] : []),
    `accepted: ${ended.size - failed.length} of ${addresses.length} addresses`,
  ].join("; ");
}

/** What follows for the notification as a whole: it is tried again while one of its addresses may still take it. */
function outcomeOf(sending: Sending<EmailDestination>, tried: readonly Tried[], first: string): AttemptOutcome {
  const addresses = addressesOf(sending.destination);
  const all = [...sending.recipients.filter(isDone), ...tried].filter(({ address }) => addresses.includes(address));
  const ended = new Map(all.map((each) => [each.address, each]));
  const [only] = addresses.length === 1 ? tried : [];
  const answer = only?.answer ?? answerOf(addresses, ended);
  const recipients = addresses.length === 1 || tried.length === 0 ? {} : { recipients: tried };
  const failed = [...ended.values()].filter(({ reason }) => reason !== sentReason);
  const last = failed.findLast(({ reason }) => !refusals.has(reason)) ?? failed[0];
  if (last === undefined) return { ...sent(answer, { messageId: first }), ...recipients };
  const state = failed.length < ended.size ? { messageId: first } : sending.state;
  return { ...notSent("email", last.reason as FailureReason, answer, state), ...recipients };
}

const addressesOf = ({ to, alsoTo }: EmailDestination) => [to, ...alsoTo];

const isAddress = (text: string) => /^[^\s@<>(),;:"\\]+@[^\s@<>(),;:"\\]+$/.test(text);

/**
 * A mail for each address by the operator's relay, one after the other. Their Message-ID is the notification's id; what follows is a reply
 * to the first.
 */
export const email: DestinationKind<EmailDestination> = {
  place: ({ to }) => to,

  templates(destination, message) {
    return {
      subject: { text: destination.subject || defaultMessage, markup: plainText },
      body: { text: destination.body, markup: isHtml(destination) ? html : plainText },
      message: { text: message || defaultMessage, markup: plainText },
    };
  },

  check(destination) {
    const addresses = addressesOf(destination).map((address) => address.toLowerCase());
    return addresses.flatMap((address, i) => {
      const path = i === 0 ? "to" : `alsoTo[${i - 1}]`;
      if (!isAddress(address)) return [{ path, rule: "must be one e-mail address" }];
      return addresses.indexOf(address) < i ? [{ path, rule: "must be another address than those before it" }] : [];
    });
  },

  newFeature: ({ alsoTo }) => (alsoTo.length > 0 ? "alsoTo of an email destination" : undefined),

  compose(rendered, { publicUrl }) {
    const { text, html: page = "" } = contentOf(rendered, publicUrl);
    return { subject: subjectOf(rendered), body: text ?? page };
  },

  async send(sending, { relay, publicUrl }) {
    const { destination, notification, state, recipients, signal } = sending;
    if (relay === undefined) {
      return notSent("email", "not_configured", "no mail relay is set (BELFRY_SMTP_URL)", state);
    }
    const messageId = `${notification.id}@${relay.domain}`;
    const first = state.messageId ?? messageId;
    const mail = {
      subject: subjectOf(sending),
      ...contentOf(sending, publicUrl),
      messageId,
      ...(first !== messageId && { inReplyTo: first }),
    };
    const done = new Set(recipients.filter(isDone).map(({ address }) => address));
    const tried: Tried[] = [];
    for (const to of addressesOf(destination)) {
      if (done.has(to)) continue;
      const one = await sendOne(relay, { ...mail, to }, signal);
      tried.push(one);
      if (ofRelay.has(one.reason)) break;
    }
    return outcomeOf(sending, tried, first);
  },
};
