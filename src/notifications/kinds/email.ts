import type { EmailDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Reason } from "../delivering/retry.ts";
import { html, plainText } from "../rendering/markup.ts";
import { cutText } from "../rendering/template.ts";
import { notSent, sent } from "./attempt-outcome.ts";
import { htmlMail, textMail } from "./default-mail.ts";
import { defaultMessage } from "./default-texts.ts";
import type { DestinationKind, Rendered } from "./kind.ts";

// A line of a mail has at most 998 bytes; people read the first fifty characters.
const subjectCharsMax = 200;

const oneLine = (text: string) => text.replace(/[\p{Cc}\s]+/gu, " ").trim();

/** Whether a body is written as HTML: it begins with a tag. What values hold makes no difference. */
const isHtml = ({ body }: EmailDestination) => /^\s*<[a-z!]/i.test(body);

const subjectOf = ({ notification, texts }: Rendered<EmailDestination>) =>
  cutText(oneLine(texts.subject ?? "") || oneLine(notification.rule.name), subjectCharsMax);

function contentOf(rendered: Rendered<EmailDestination>, publicUrl: string): { text?: string; html?: string } {
  const { destination, notification, texts } = rendered;
  if (destination.body === "") {
    const message = texts.message ?? "";
    return { text: textMail(notification, message, publicUrl), html: htmlMail(notification, message, publicUrl) };
  }
  return isHtml(destination) ? { html: texts.body ?? "" } : { text: texts.body ?? "" };
}

/** nodemailer's code and the relay's number: only the number reports what is for good. */
function reasonOf({ code, responseCode = 0 }: { code?: string; responseCode?: number }): Reason {
  if (responseCode === 535 || responseCode === 530 || responseCode === 534) return "unauthorized";
  if (responseCode >= 500) return "rejected";
  if (responseCode >= 400) return "busy";
  if (code === "ETIMEDOUT" || code === "EABORT") return "timeout";
  if (code === "EDNS") return "unresolved";
  if (code === "ECONNECTION" || code === "ESOCKET" || code === "ETLS" || code === "EPROTOCOL") return "network";
  return code === "EAUTH" || code === "ENOAUTH" ? "unauthorized" : "bad_request";
}

/** One mail by the operator's relay. Its Message-ID is the notification's id; what follows is a reply to the first. */
export const email: DestinationKind<EmailDestination> = {
  place: ({ to }) => to,

  templates(destination, message) {
    return {
      subject: { text: destination.subject || defaultMessage, markup: plainText },
      body: { text: destination.body, markup: isHtml(destination) ? html : plainText },
      message: { text: message || defaultMessage, markup: plainText },
    };
  },

  check: ({ to }) =>
    /^[^\s@<>(),;:"\\]+@[^\s@<>(),;:"\\]+$/.test(to) ? [] : [{ path: "to", rule: "must be one e-mail address" }],

  compose(rendered, { publicUrl }) {
    const { text, html: page = "" } = contentOf(rendered, publicUrl);
    return { subject: subjectOf(rendered), body: text ?? page };
  },

  async send(sending, { relay, publicUrl }) {
    const { destination, notification, state, signal } = sending;
    if (relay === undefined) {
      return notSent("email", "not_configured", "no mail relay is set (BELFRY_SMTP_URL)", state);
    }
    const messageId = `${notification.id}@${relay.domain}`;
    const first = state.messageId ?? messageId;
    try {
      const answer = await relay.send(
        {
          to: destination.to,
          subject: subjectOf(sending),
          ...contentOf(sending, publicUrl),
          messageId,
          ...(first !== messageId && { inReplyTo: first }),
        },
        signal,
      );
      return sent(answer, { messageId: first });
    } catch (error) {
      const { code, responseCode, response } = error as { code?: string; responseCode?: number; response?: string };
      if (code === undefined && responseCode === undefined) throw error;
      const said = response ?? `no answer of the mail relay (${code})`;
      return notSent("email", reasonOf({ ...(code && { code }), ...(responseCode && { responseCode }) }), said, state);
    }
  },
};
