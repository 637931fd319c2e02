import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { hostOf } from "../../credentials/allowed-hosts.ts";
import { invalidFields } from "../../errors.ts";
import type { Broken } from "../../rpc/constraint-rules.ts";
import { fieldPath } from "../../rpc/constraint-rules.ts";
import { hidden } from "./redact.ts";
import { type Parted, withSecrets } from "./secrets.ts";

/** Scheme, host and port of an address, alike for all ways of writing it; undefined with a user name, or for none. */
export function originOf(address: string): string | undefined {
  const host = hostOf(address);
  if (host === undefined) return undefined;
  const { protocol, port, username, password } = new URL(address);
  return username === "" && password === "" ? `${protocol}//${host}:${port}` : undefined;
}

/** The origin of an address that may have tags; undefined when tags may change it. */
export function fixedOrigin(template: string): string | undefined {
  const [fixed = ""] = template.split("{{", 1);
  if (fixed === template) return originOf(template);
  const [start] = /^https?:\/\/[^/\\?#]+[/\\?#]/i.exec(fixed) ?? [];
  return start === undefined ? undefined : originOf(start);
}

/** The addresses that the secrets of a destination are sent to, or what they are exchanged for; by their paths. */
export function addressesOf({ type }: DestinationType): Record<string, string> {
  if (type.case === "webhook") return { "webhook.url": type.value.url };
  if (type.case !== "itsm") return {};
  const { baseUrl, authorization } = type.value;
  if (authorization.case !== "oauth") return { "itsm.baseUrl": baseUrl };
  // The access token goes to baseUrl.
  const { tokenUrl, authUrl } = authorization.value;
  return { "itsm.oauth.tokenUrl": tokenUrl, "itsm.oauth.authUrl": authUrl, "itsm.baseUrl": baseUrl };
}

/** The paths of addresses that lead elsewhere than those of the stored destination. */
function movedAddresses(type: DestinationType, stored: DestinationType | undefined): string[] {
  const before = stored === undefined ? {} : addressesOf(stored);
  return Object.entries(addressesOf(type)).flatMap(([path, address]) => {
    const old = before[path];
    if (old === address) return [];
    const origin = fixedOrigin(address);
    return old !== undefined && origin !== undefined && origin === fixedOrigin(old) ? [] : [path];
  });
}

/** A webhook's address that its secrets are sent to must stand before the first tag; one that was stored otherwise may stay. */
function unfixedAddress(
  { type }: DestinationType,
  { fresh, kept }: Parted,
  stored: DestinationType | undefined,
): Broken[] {
  if (type.case !== "webhook" || fixedOrigin(type.value.url) !== undefined) return [];
  const hasFresh = Object.keys(fresh).length > 0;
  if (!hasFresh && kept.length === 0) return [];
  if (!hasFresh && stored?.type.case === "webhook" && stored.type.value.url === type.value.url) return [];
  const rule =
    "must begin with scheme, host and a slash, without tags or a user name: signingSecret and headers are sent there";
  return [{ path: "webhook.url", rule }];
}

/**
 * Checks that the secrets of a destination, whose type is at `at` in the request, are sent where they belong: those that
 * are kept go where the stored ones go, and no template decides about the host. @throws code 3
 */
export function checkSecretAddresses(parted: Parted, stored: DestinationType | undefined, at: string): void {
  const type = withSecrets(parted.masked, parted.fresh);
  const moved = parted.kept.length === 0 ? [] : movedAddresses(type, stored);
  const rule = `must be the secret itself: ${hidden} keeps it only while scheme, host and port of ${moved.join(" and ")} stay`;
  const broken = [
    ...unfixedAddress(type, parted, stored),
    ...(moved.length === 0 ? [] : parted.kept.map((path) => ({ path, rule }))),
  ];
  if (broken.length > 0)
    throw invalidFields(broken.map((each) => ({ ...each, path: fieldPath(at, each.path), id: FieldRule.SECRET })));
}
