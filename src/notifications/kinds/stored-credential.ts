import { clone, create } from "@bufbuild/protobuf";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  BasicAuthorizationSchema,
  type DestinationType,
  DestinationTypeSchema,
  type ItsmDestination,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import { allowsHost, hostOf } from "../../credentials/allowed-hosts.ts";
import type { UsableCredential } from "../../credentials/used-by.ts";
import { invalidField, invalidFields } from "../../errors.ts";
import { fieldPath } from "../../rpc/constraint-rules.ts";
import type { SendEnvironment } from "./send-environment.ts";

/** Which types of stored credentials a kind of destination may name. */
const types: Readonly<Record<string, readonly string[]>> = {
  incidentPaging: ["incidentPaging"],
  itsm: ["usernamePassword", "itsmOAuth"],
  teamChat: ["teamChat"],
};

/** The id of the stored credential that a destination names; empty when its secrets are in it. */
export function credentialIdOf({ type }: DestinationType): string {
  return type.value !== undefined && "credentialId" in type.value ? type.value.credentialId : "";
}

/**
 * Checks that a destination, whose type is at `path` in the request, and the stored credential that it names go
 * together; `credential` is undefined when it names none. @throws code 3
 */
export function checkCredential(
  { type }: DestinationType,
  credential: UsableCredential | undefined,
  path: string,
): void {
  const kind = type.case ?? "";
  const credentialType = credential?.type;
  const wanted = types[kind] ?? [];
  if (credentialType !== undefined && !wanted.includes(credentialType)) {
    const rule = `must be the id of a credential of type ${wanted.join(" or ")}, not ${credentialType}`;
    throw invalidField(`${path}.${kind}.credentialId`, rule, FieldRule.SECRET);
  }
  if (type.case === "itsm") checkItsm(type.value, credentialType, `${path}.itsm`);
}

function checkItsm({ authorization }: ItsmDestination, credentialType: string | undefined, path: string): void {
  if (credentialType === "usernamePassword" && authorization.case !== undefined) {
    throw invalidField(
      `${path}.${authorization.case}`,
      "must be left out beside credentialId of a usernamePassword",
      FieldRule.EXCLUDED,
    );
  }
  if (credentialType === "itsmOAuth" && authorization.case !== "oauth") {
    throw invalidField(`${path}.oauth`, "is required beside credentialId of an itsmOAuth", FieldRule.REQUIRED);
  }
  if (authorization.case !== "oauth") return;
  const { clientId, clientSecret } = authorization.value;
  const rule = credentialType === undefined ? "is required" : "must be left out beside credentialId";
  const broken = Object.entries({ clientId, clientSecret }).filter(
    ([, value]) => (value === "") === (credentialType === undefined),
  );
  if (broken.length > 0)
    throw invalidFields(broken.map(([name]) => ({ path: `${path}.oauth.${name}`, rule, id: FieldRule.SECRET })));
}

/** Where the products are that the operator gives the addresses of. */
export type ProductAddresses = Pick<SendEnvironment, "incidentPagingUrl" | "teamChatUrl">;

/** Why a destination does not fit `allowedHosts` of its credential; the path is within its type. */
export interface RefusedHost {
  readonly path: string;
  readonly rule: string;
}

/** The addresses that a destination's credential is sent to, or what it is exchanged for; by their paths. */
function credentialAddresses({ type }: DestinationType, { incidentPagingUrl, teamChatUrl }: ProductAddresses) {
  const addresses: [path: string, address: string][] = [];
  if (type.case === "incidentPaging") addresses.push(["incidentPaging.credentialId", incidentPagingUrl]);
  if (type.case === "teamChat") addresses.push(["teamChat.credentialId", teamChatUrl]);
  if (type.case === "itsm") {
    const { baseUrl, authorization } = type.value;
    addresses.push(["itsm.baseUrl", baseUrl]);
    if (authorization.case === "oauth") addresses.push(["itsm.oauth.tokenUrl", authorization.value.tokenUrl]);
  }
  return addresses;
}

/** The hosts that a destination's credential is sent to. */
export const hostsOf = (type: DestinationType, products: ProductAddresses): string[] =>
  credentialAddresses(type, products).map(([, address]) => hostOf(address) ?? "");

/** The first address of a destination that its credential's secrets, or what they are exchanged for, may not be sent to. */
export function refusedHost(
  type: DestinationType,
  allowedHosts: readonly string[],
  products: ProductAddresses,
): RefusedHost | undefined {
  for (const [path, address] of credentialAddresses(type, products)) {
    const host = hostOf(address) ?? "";
    if (!allowsHost(allowedHosts, host)) {
      return { path, rule: `sends the credential to ${host}, which is none of its allowedHosts` };
    }
  }
  return undefined;
}

/** Checks a destination, whose type is at `at` in the request, by `allowedHosts` of its credential. @throws code 3 */
export function checkCredentialHosts(
  type: DestinationType,
  allowedHosts: readonly string[],
  products: ProductAddresses,
  at: string,
): void {
  const refused = refusedHost(type, allowedHosts, products);
  if (refused !== undefined) throw invalidField(fieldPath(at, refused.path), refused.rule, FieldRule.SECRET);
}

/** The type with the secrets of the stored credential that it names. */
export function withCredential(type: DestinationType, secrets: Readonly<Record<string, string>>): DestinationType {
  const filled = clone(DestinationTypeSchema, type);
  const { case: kind, value } = filled.type;
  if (kind === "incidentPaging") value.integrationKey = secrets.routingKey ?? "";
  else if (kind === "teamChat") value.token = secrets.token ?? "";
  else if (kind === "itsm" && value.authorization.case === "oauth") {
    value.authorization.value.clientId = secrets.clientId ?? "";
    value.authorization.value.clientSecret = secrets.clientSecret ?? "";
  } else if (kind === "itsm") {
    const { username = "", password = "" } = secrets;
    value.authorization = { case: "basic", value: create(BasicAuthorizationSchema, { username, password }) };
  }
  return filled;
}
