import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ApiClient,
  ApiClientSchema,
  ApiClientType,
  type ApiKey,
  ApiKeySchema,
} from "#gen/belfry/tenants/v1/api_client_pb.ts";
import type { KeyRow } from "../auth/api-keys.ts";
import type { ClientRow } from "../auth/clients.ts";

const timestamp = (ms: bigint | null) => (ms === null ? undefined : timestampFromMs(Number(ms)));

/** An API client as the API shows it. */
export function toApiClient({ id, name, type, role, createdMs }: ClientRow): ApiClient {
  const createTime = timestampFromMs(Number(createdMs));
  return create(ApiClientSchema, { id, name, type: ApiClientType[type], role: role ?? "", createTime });
}

/** A key as the API shows it, without its secret. */
export function toApiKey({ id, prefix, description, createdMs, expiresMs, lastUsedMs }: KeyRow): ApiKey {
  const createTime = timestampFromMs(Number(createdMs));
  const [expireTime, lastUsedTime] = [timestamp(expiresMs), timestamp(lastUsedMs)];
  return create(ApiKeySchema, {
    id,
    prefix,
    description,
    createTime,
    ...(expireTime && { expireTime }),
    ...(lastUsedTime && { lastUsedTime }),
  });
}
