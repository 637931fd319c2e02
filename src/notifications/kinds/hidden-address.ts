import type { DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { hidden } from "./redact.ts";

/** The path of a webhook's address within a destination's type. */
export const addressPath = "webhook.url";

/** Hosts whose addresses let anybody post who has one. */
const secretHosts =
  /^(hooks\.slack\.com|discord(app)?\.com|chat\.googleapis\.com|api\.telegram\.org|.*\.(webhook\.office|logic\.azure|api\.powerplatform)\.com)$/;

/** The host, with its port, of an address that is a secret by itself; undefined: it is none. Tags may follow the host. */
function secretHost(template: string): string | undefined {
  const [start] = /^\s*https?:\/\/[^/\\?#{]+(?=[/\\?#]|$)/i.exec(template) ?? [];
  if (start === undefined || !URL.canParse(start)) return undefined;
  const { hostname, host } = new URL(start);
  const isSecret = secretHosts.test(hostname.replace(/\.$/, "")) || template.startsWith("/hooks/", start.length);
  return isSecret ? host : undefined;
}

/** Tells whether a webhook's address is a secret by itself. */
export const isSecretAddress = (template: string): boolean => secretHost(template) !== undefined;

/** What answers show of an address that is a secret: its host and last four characters; empty: it is none. */
export function addressHint(template: string): string {
  const host = secretHost(template);
  return host === undefined ? "" : `${host}/…${[...template].slice(-4).join("")}`;
}

/** The same destination as answers, templates and previews show it: without its address where that is a secret. */
export function withoutAddress(type: DestinationType): DestinationType {
  if (type.type.case !== "webhook" || !isSecretAddress(type.type.value.url)) return type;
  const value = { ...type.type.value, url: hidden, addressHint: addressHint(type.type.value.url) };
  return { ...type, type: { case: "webhook", value } };
}
