import { type ApiClient, ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";

/** Purposes of clients, as the form offers them. */
export const typeChoices = [
  [String(ApiClientType.USER), "Using the API, as far as its role allows"],
  [String(ApiClientType.DATA_INGEST), "Sending data alone"],
  [String(ApiClientType.USER_MANAGEMENT), "Accounts and groups alone"],
] as const;

export const roleChoices = [
  ["read_only_user", "Read only: read and search"],
  ["user", "User: also send data, acknowledge, close and annotate events, set custom properties"],
  ["manager", "Manager: everything"],
] as const;

/** Describes the permissions of a client's keys. */
export function purposeOf({ type, role }: Pick<ApiClient, "type" | "role">): string {
  if (type === ApiClientType.USER) return roleChoices.find(([name]) => name === role)?.[1] ?? role;
  return typeChoices.find(([name]) => name === String(type))?.[1] ?? "";
}
