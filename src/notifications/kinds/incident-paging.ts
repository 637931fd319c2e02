import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { IncidentPagingDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { isBlank } from "../../entities/identity.ts";
import type { Notification } from "../subject/notification.ts";
import { plainText, visible } from "../templates/markup.ts";
import { cutCharacters, cutText } from "../templates/template.ts";
import { calledOf, titleLines } from "../templates/titles.ts";
import { hasMembers, isoTime, linesMax } from "../templates/variables.ts";
import { isPage, isSuccess, notSent, parsedObject, refusedOutcome, sent, told, tried } from "./attempt-outcome.ts";
import { defaultMessage, firstLine, linksOf } from "./default-texts.ts";
import type { DestinationKind } from "./kind.ts";

const bodyBytesMax = 512_000;
const summaryCharsMax = 1024;

const severities: Readonly<Record<number, string>> = {
  [Severity.CRITICAL]: "critical",
  [Severity.ERROR]: "error",
  [Severity.WARNING]: "warning",
};

/** What the product is to do. It knows no way back from acknowledged but a new trigger. */
function actionOf({ occasion, clear }: Notification): "trigger" | "acknowledge" | "resolve" {
  if (clear) return "resolve";
  return occasion === "acknowledged" ? "acknowledge" : "trigger";
}

function payloadOf(notification: Notification, message: string) {
  const { event, entity, group, metric, rule, trigger, timeMs } = notification;
  const isGroup = hasMembers(notification);
  return {
    summary: cutCharacters(firstLine(notification, message) || rule.name, summaryCharsMax),
    // The product refuses a blank one, which entities may have that were named before blank names counted as absent.
    source: isBlank(entity.name) ? entity.id : visible(calledOf(entity)),
    severity: event === undefined ? "error" : (severities[event.severity] ?? "info"),
    timestamp: isoTime(event?.timeMs ?? timeMs),
    ...(event !== undefined && !isBlank(event.type) && { class: event.type }),
    custom_details: {
      rule: rule.name,
      ...(trigger.name !== "" && { trigger: trigger.name }),
      ...(event && !isGroup && { event: event.name, summary: event.summary, body: event.body }),
      ...(group && isGroup && { alerts: titleLines(group, linesMax) }),
      ...(event?.startMs !== undefined && { since: isoTime(event.startMs) }),
      ...(event && { count: String(event.count), fields: event.metadata }),
      ...(metric && { metric: metric.name, value: metric.value ?? null }),
      ...(trigger.threshold !== undefined && { threshold: trigger.threshold, threshold_type: trigger.thresholdType }),
      ...(!isGroup && { dimensions: entity.dimensions }),
    },
  };
}

/** Without the key of the integration. */
function bodyOf(notification: Notification, message: string, publicUrl: string) {
  const event_action = actionOf(notification);
  const dedup_key = notification.subjectId;
  if (event_action !== "trigger") return { event_action, dedup_key };
  const links = linksOf(notification, publicUrl).map(({ text, url }) => ({ href: url, text }));
  const whole = {
    event_action,
    dedup_key,
    payload: payloadOf(notification, message),
    client: "Belfry",
    client_url: publicUrl,
    ...(links.length > 0 && { links }),
  };
  if (Buffer.byteLength(JSON.stringify(whole)) <= bodyBytesMax - 1024) return whole;
  const source = cutText(whole.payload.source, summaryCharsMax);
  return { ...whole, payload: { ...whole.payload, source, custom_details: { note: "left out: too large" } } };
}

/** Events API version 2: one alert a subject. What is acknowledged or resolved without one is dropped by the product. */
export const incidentPaging: DestinationKind<IncidentPagingDestination> = {
  pace: { tries: 120, perMs: 60_000 },

  joint: true,

  takesNoEnds: true,

  templates: (_destination, message) => ({ message: { text: message || defaultMessage, markup: plainText } }),

  check: ({ integrationKey, credentialId }) =>
    (integrationKey === "") === (credentialId === "")
      ? [{ path: "integrationKey", rule: "must be given, or else credentialId" }]
      : [],

  compose({ notification, texts }, { publicUrl }) {
    const body = bodyOf(notification, texts.message ?? "", publicUrl);
    return {
      subject: "payload" in body ? body.payload.summary : body.event_action,
      body: JSON.stringify(body, null, 2),
    };
  },

  send: ({ destination, notification, texts, state, signal }, { outbound, incidentPagingUrl, publicUrl, nowMs }) =>
    tried("incidentPaging", state, async () => {
      const answer = await outbound.trusted({
        method: "POST",
        url: `${incidentPagingUrl}/v2/enqueue`,
        headers: { "content-type": "application/json; charset=utf-8" },
        body: JSON.stringify({
          routing_key: destination.integrationKey,
          ...bodyOf(notification, texts.message ?? "", publicUrl),
        }),
        signal,
      });
      if (!isSuccess(answer)) return refusedOutcome("incidentPaging", answer, state, nowMs());
      if (isPage(answer.body)) return notSent("incidentPaging", "unreadable", told(answer), state);
      const status = parsedObject(answer.body)?.status;
      if (status === undefined || status === "success") return sent(told(answer), state);
      return notSent("incidentPaging", "rejected", told(answer), state);
    }),
};
