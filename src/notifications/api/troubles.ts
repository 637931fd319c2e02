import { isIP } from "node:net";
import { type DestinationType, WebhookFormat } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { allMatchersTrouble, joinedTroubles, storedMatchers } from "../../clause/label-matcher.ts";
import { hidden } from "../kinds/redact.ts";
import type { KindName } from "../kinds/retry.ts";
import { addressesOf, fixedOrigin } from "../kinds/secret-addresses.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";

interface Judged extends Pick<Rule, "triggerNames" | "matchers" | "destinationNames" | "sendUpdates" | "repeat"> {
  repeatIntervalSec: bigint;
  hasOpenRecords: boolean;
  /** Whether it repeats by reports, and all that it matches came as alerts. */
  matchesAlertsAlone: boolean;
}

/** Seconds between repetitions where a rule does not say. */
export const repeatIntervalDefault = 3600n;

/** The kinds whose receiver keeps open what it was sent until that is resolved there. */
export const recordKinds: readonly KindName[] = ["incidentPaging", "itsm", "officeChat", "teamChat"];

/** Says why a rule can notify nobody, or what of it has no effect; empty when nothing is wrong. */
export const ruleTrouble = (rule: Judged): string =>
  joinedTroubles([
    missingTrouble(rule),
    allMatchersTrouble(storedMatchers(rule.matchers, "matchers")),
    rule.hasOpenRecords && !rule.sendUpdates
      ? "sendUpdates is false: its paging, ticket and chat destinations are not sent that something is resolved"
      : "",
    rule.matchesAlertsAlone
      ? "repeat without repeatWhile follows reports, and an alert that is sent again is none: give repeatWhile"
      : "",
    !rule.repeat && rule.repeatIntervalSec !== repeatIntervalDefault
      ? "repeatInterval has no effect without repeat: nothing is repeated"
      : "",
  ]);

function missingTrouble({ triggerNames, matchers, destinationNames }: Judged): string {
  const conditions = triggerNames.length + matchers.length;
  if (conditions === 0 && destinationNames.length === 0) return "it has no trigger and no destination";
  if (conditions === 0) return "it has no trigger: nothing matches";
  return destinationNames.length === 0 ? "it has no destination: nobody is notified" : "";
}

/** Decides whether an address of a destination may be dialled, and whether e-mails are sent. */
export type Reach = Pick<SendEnvironment, "relay" | "outbound">;

/** Says why nothing can be sent to a destination of this type, whose secrets may be masked; empty when nothing shows. */
export function destinationTrouble(type: DestinationType, { relay, outbound }: Reach): string {
  if (type.type.case === "email" && relay === undefined) return "no mail relay is set (BELFRY_SMTP_URL)";
  const path = Object.entries(addressesOf(withHintedAddress(type))).find(([, address]) =>
    isRefused(address, outbound),
  )?.[0];
  if (path !== undefined) return `${path}: the address is not public (BELFRY_OUTBOUND_ALLOW names exceptions)`;
  return chatTrouble(withHintedAddress(type));
}

/** The type with an address on the same host where its own is hidden. */
function withHintedAddress(type: DestinationType): DestinationType {
  if (type.type.case !== "webhook" || type.type.value.url !== hidden) return type;
  const { addressHint } = type.type.value;
  const value = { ...type.type.value, url: `https://${addressHint.slice(0, addressHint.lastIndexOf("/"))}/` };
  return { ...type, type: { case: "webhook", value } };
}

const bodyOf = (anchor: string) => `format WEBHOOK_FORMAT_TEMPLATE with the body in docs/webhook-bodies.md#${anchor}`;

/** Chats whose incoming webhooks take neither the service's form of a body nor Alertmanager's. */
const chats: readonly { host: RegExp; product: string; fitting: string }[] = [
  { host: /^hooks\.slack(-gov)?\.com$/, product: "Slack", fitting: `the kind teamChat, or ${bodyOf("slack")}` },
  {
    host: /\.(webhook\.office\.com|logic\.azure\.com|api\.powerplatform\.com)$/,
    product: "Teams",
    fitting: "the kind officeChat",
  },
  { host: /(^|\.)discord(app)?\.com$/, product: "Discord", fitting: bodyOf("discord") },
  { host: /^chat\.googleapis\.com$/, product: "Google Chat", fitting: bodyOf("google-chat") },
  { host: /^api\.telegram\.org$/, product: "Telegram", fitting: bodyOf("telegram") },
];

/** Says which kind or body fits a chat's address that is stored as a plain webhook. */
function chatTrouble({ type }: DestinationType): string {
  if (type.case !== "webhook" || type.value.format === WebhookFormat.TEMPLATE) return "";
  const origin = fixedOrigin(type.value.url);
  const host = origin === undefined ? "" : new URL(origin).hostname;
  const chat = chats.find((each) => each.host.test(host));
  return chat === undefined ? "" : `webhook.url: ${chat.product} takes its own form of body alone: use ${chat.fitting}`;
}

/** A name is judged when it is resolved, but for the one that always means this machine. */
function isRefused(address: string, { mayDial }: Reach["outbound"]): boolean {
  const origin = fixedOrigin(address);
  if (origin === undefined) return false;
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, "");
  if (/(^|\.)localhost$/.test(host)) return !mayDial("127.0.0.1") && !mayDial("::1");
  return isIP(host) !== 0 && !mayDial(host);
}
