import { createHmac } from "node:crypto";
import { toJson } from "@bufbuild/protobuf";
import { SeveritySchema, StatusSchema } from "#gen/belfry/events/v1/event_pb.ts";
import { type WebhookDestination, WebhookFormat } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Pace } from "../../event-loop.ts";
import type { Broken } from "../../rpc/constraint-rules.ts";
import type { Notification } from "../subject/notification.ts";
import { alertsOf, sharedOf, templateVariables } from "../templates/alerts.ts";
import { address, jsonMarkup, leavesSegment, plainText } from "../templates/markup.ts";
import { newSteps, parseTemplate, render, TemplateError } from "../templates/template.ts";
import { eventUrl, hasMembers, isoTime } from "../templates/variables.ts";
import { isSuccess, notSent, refusedOutcome, sent, told, tried } from "./attempt-outcome.ts";
import { brokenUrl } from "./checks.ts";
import { defaultMessage } from "./default-texts.ts";
import type { DestinationKind, Rendered } from "./kind.ts";
import { sampleNotifications } from "./sample-notifications.ts";
import { fixedOrigin, originOf } from "./secret-addresses.ts";

/** Headers that the sender sets itself, or that HTTP does. */
const reserved =
  /^(?:webhook-.*|host|content-(?:type|length|encoding)|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/i;
const secretBytesMin = 24;
const secretBytesMax = 64;
const secretsMax = 2;
/** Of a rendered address: twice what a template may have. A longer one is not cut, since what is left leads elsewhere. */
const addressCharsMax = 16_384;
const jsonErrorCharsMax = 200;
const sampleUrl = "https://belfry.example.com";

/** Secrets in the form of Standard Webhooks, by blanks: the one in use and, while it is exchanged, the one before. */
const secretTexts = (text: string) => text.split(/\s+/).filter((part) => part !== "");
const secretBytes = (text: string) => Buffer.from(text.replace(/^whsec_/, ""), "base64");

function isSecret(text: string) {
  if (!/^(?:whsec_)?[A-Za-z0-9+/]+={0,2}$/.test(text)) return false;
  const { length } = secretBytes(text);
  return length >= secretBytesMin && length <= secretBytesMax;
}

function checkHeaders(headers: Record<string, string>): Broken[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const path = `headers[${JSON.stringify(name)}]`;
    if (!/^[!#$%&'*+.^`|~\w-]+$/.test(name)) return [{ path, rule: "must be named as HTTP allows" }];
    if (reserved.test(name)) return [{ path, rule: "is set by the service" }];
    return /^[\t\x20-\x7e\x80-\xff]*$/.test(value) ? [] : [{ path, rule: "must be characters of ISO 8859-1" }];
  });
}

/** The body, as docs/destinations.md describes it. */
function bodyOf(notification: Notification, message: string, publicUrl: string) {
  const { id, tenant, occasion, timeMs, clear, rule, trigger, group, metric } = notification;
  const isOne = !hasMembers(notification);
  const event = isOne ? notification.event : undefined;
  return {
    id,
    tenant: tenant.name,
    timestamp: String(timeMs),
    message,
    url: eventUrl(notification, publicUrl),
    occasion,
    clear,
    rule: {
      name: rule.name,
      trigger_names: rule.triggerNames,
      destination_names: rule.destinationNames,
      message: rule.message,
      enabled: rule.enabled,
      repeat_interval: Number(rule.repeatIntervalSec),
    },
    trigger: { definition: toJson(TriggerTypeSchema, trigger.type) },
    event:
      event === undefined
        ? null
        : {
            id: event.id,
            name: event.name,
            type: event.type,
            summary: event.summary,
            severity: event.severity,
            severity_name: SeveritySchema.value[event.severity]?.name ?? "",
            status: event.status,
            status_name: StatusSchema.value[event.status]?.name ?? "",
            acknowledged: event.acknowledged,
            ...(event.startMs !== undefined && { start_time: String(event.startMs) }),
            fields: event.metadata,
            ...(event.dedupKey !== undefined && { dedup_key: event.dedupKey }),
            ...(event.expiresMs !== undefined && { expires_at: isoTime(event.expiresMs) }),
          },
    entity: isOne ? notification.entity : null,
    ...(group && {
      group_key: group.key,
      group_labels: group.labels,
      alerts: alertsOf(notification),
      count: group.firing + group.resolved,
      ...(group.silenced && { silenced: group.silenced }),
    }),
    ...(metric && {
      metric: {
        name: metric.name,
        ...(metric.labels && { labels: metric.labels }),
        value: metric.value ?? null,
        timestamp: isoTime(metric.timeMs) || null,
      },
    }),
  };
}

/** The body as version 4 of Alertmanager's webhook has it. */
function alertmanagerBody({ notification, receiver }: Rendered<WebhookDestination>, publicUrl: string) {
  const { group, subjectId, clear } = notification;
  const alerts = alertsOf(notification);
  return {
    version: "4",
    groupKey: group?.key ?? subjectId,
    truncatedAlerts: group === undefined ? 0 : group.firing + group.resolved - alerts.length,
    status: clear ? "resolved" : "firing",
    receiver,
    ...sharedOf(notification),
    externalURL: publicUrl,
    alerts,
  };
}

/** What is sent, as a value, or of a template as the text that it makes. */
function sentBody(rendered: Rendered<WebhookDestination>, publicUrl: string): object | string {
  const { destination, notification, texts } = rendered;
  if (destination.format === WebhookFormat.TEMPLATE) return texts.body ?? "";
  if (destination.format === WebhookFormat.ALERTMANAGER) return alertmanagerBody(rendered, publicUrl);
  return bodyOf(notification, texts.message ?? "", publicUrl);
}

/** Says why a text is no JSON; undefined: it is some. */
function brokenJson(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `makes no JSON: ${(error as Error).message.slice(0, jsonErrorCharsMax)}`;
  }
}

function checkBody(format: WebhookFormat, body: string): Broken[] {
  const path = "body";
  if (format === WebhookFormat.TEMPLATE)
    return body === "" ? [{ path, rule: "must be given beside WEBHOOK_FORMAT_TEMPLATE" }] : [];
  return body === "" ? [] : [{ path, rule: "must be empty unless format is WEBHOOK_FORMAT_TEMPLATE" }];
}

/** Renders a body for no member, one and two, and for their end, all in the steps of one notification: what makes no JSON then is no body. */
async function tryOutBody(body: string, pace: Pace): Promise<Broken[]> {
  const path = "body";
  const template = parseTemplate(body, newSteps());
  const steps = newSteps();
  for (const notification of sampleNotifications()) {
    const markup = jsonMarkup();
    try {
      const variables = templateVariables(notification, undefined, markup, sampleUrl);
      const rule = brokenJson(await render(template, variables, markup, { steps, pace }));
      if (rule !== undefined)
        return [{ path, rule: `${rule}, as a notification on the occasion ${notification.occasion}` }];
    } catch (error) {
      if (error instanceof TemplateError) return [{ path, rule: error.message }];
      throw error;
    }
  }
  return [];
}

/** The headers of Standard Webhooks for one try: the id stays, the time is the try's. */
function signed(id: string, body: string, secrets: string, nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = secretTexts(secrets).map(
    (secret) => `v1,${createHmac("sha256", secretBytes(secret)).update(`${id}.${timestamp}.${body}`).digest("base64")}`,
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    ...(signatures.length > 0 && { "webhook-signature": signatures.join(" ") }),
  };
}

/** Why nothing is sent to a rendered address. The webhook's secrets stay where its template says, before any tag. */
function misled({ url, signingSecret, headers }: WebhookDestination, rendered: string): string | undefined {
  if (rendered.length >= addressCharsMax) return `the address has ${addressCharsMax} characters or more`;
  if (rendered !== url && leavesSegment(rendered))
    return "the tags of url make a segment of its path that leads out of it";
  if (signingSecret === "" && Object.values(headers).every((value) => value === "")) return undefined;
  const origin = fixedOrigin(url);
  if (origin === undefined) return "url has tags before its path, and signingSecret or headers would be sent there";
  return URL.canParse(rendered) && originOf(rendered) !== origin ? "the tags of url change its host" : undefined;
}

/** An HTTP POST by Standard Webhooks 1.0.0. */
export const webhook: DestinationKind<WebhookDestination> = {
  templates: ({ url, format, body }, message) => ({
    url: { text: url, markup: address(), charsMax: addressCharsMax },
    ...(format === WebhookFormat.TEMPLATE && { body: { text: body, markup: jsonMarkup() } }),
    message: { text: message || defaultMessage, markup: plainText },
  }),

  check({ url, signingSecret, headers, format, body }) {
    const secrets = secretTexts(signingSecret);
    const good = secrets.length <= secretsMax && secrets.every(isSecret);
    const rule = `must be whsec_ and ${secretBytesMin} to ${secretBytesMax} bytes in base64, or two of these, by a blank`;
    return [
      ...brokenUrl("url", url),
      ...(good ? [] : [{ path: "signingSecret", rule }]),
      ...checkHeaders(headers),
      ...checkBody(format, body),
    ];
  },

  tryOut: async ({ format, body }, pace) =>
    format === WebhookFormat.TEMPLATE && body !== "" ? await tryOutBody(body, pace) : [],

  compose(rendered, { publicUrl }) {
    const body = sentBody(rendered, publicUrl);
    return { subject: "", body: typeof body === "string" ? body : JSON.stringify(body, null, 2) };
  },

  send: (sending, { outbound, publicUrl, nowMs }) =>
    tried("webhook", sending.state, async () => {
      const { destination, notification, texts, state, signal } = sending;
      const why = misled(destination, texts.url ?? "");
      if (why !== undefined) return notSent("webhook", "bad_address", why, state);
      const made = sentBody(sending, publicUrl);
      const broken = typeof made === "string" ? brokenJson(made) : undefined;
      if (broken !== undefined) return notSent("webhook", "bad_request", `body ${broken}`, state);
      const body = typeof made === "string" ? made : JSON.stringify(made);
      const answer = await outbound.guarded({
        method: "POST",
        url: texts.url ?? "",
        headers: {
          ...destination.headers,
          "content-type": "application/json; charset=utf-8",
          ...signed(notification.id, body, destination.signingSecret, nowMs()),
        },
        body,
        signal,
      });
      return isSuccess(answer) ? sent(told(answer), state) : refusedOutcome("webhook", answer, state, nowMs());
    }),
};
