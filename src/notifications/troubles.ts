import { isIP } from "node:net";
import type { DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { matchersTrouble, storedMatchers } from "../clause/label-matcher.ts";
import type { SendEnvironment } from "./delivering/send-environment.ts";
import { addressesOf, fixedOrigin } from "./secret-addresses.ts";

/** Says why a rule can notify nobody, or what its matchers cannot be compared with; empty when nothing is wrong. */
export function ruleTrouble({
  triggerNames,
  matchers,
  destinationNames,
}: Pick<Rule, "triggerNames" | "matchers" | "destinationNames">): string {
  const conditions = triggerNames.length + matchers.length;
  if (conditions === 0 && destinationNames.length === 0) return "it has no trigger and no destination";
  if (conditions === 0) return "it has no trigger: nothing matches";
  if (destinationNames.length === 0) return "it has no destination: nobody is notified";
  return matchersTrouble(storedMatchers(matchers, "matchers"));
}

/** Decides whether an address of a destination may be dialled, and whether e-mails are sent. */
export type Reach = Pick<SendEnvironment, "relay" | "outbound">;

/** Says why nothing can be sent to a destination of this type, whose secrets may be masked; empty when nothing shows. */
export function destinationTrouble(type: DestinationType, { relay, outbound }: Reach): string {
  if (type.type.case === "email" && relay === undefined) return "no mail relay is set (BELFRY_SMTP_URL)";
  const path = Object.entries(addressesOf(type)).find(([, address]) => isRefused(address, outbound))?.[0];
  return path === undefined ? "" : `${path}: the address is not public (BELFRY_OUTBOUND_ALLOW names exceptions)`;
}

/** A name is judged when it is resolved, but for the one that always means this machine. */
function isRefused(address: string, { mayDial }: Reach["outbound"]): boolean {
  const origin = fixedOrigin(address);
  if (origin === undefined) return false;
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, "");
  if (/(^|\.)localhost$/.test(host)) return !mayDial("127.0.0.1") && !mayDial("::1");
  return isIP(host) !== 0 && !mayDial(host);
}
