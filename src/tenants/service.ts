import { create, type DescService } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type ApiClient,
  ApiClientSchema,
  ApiClientType,
  type ApiKey,
  ApiKeySchema,
} from "#gen/belfry/tenants/v1/api_client_pb.ts";
import {
  ApiClientService,
  CreateApiClientResponseSchema,
  CreateApiKeyResponseSchema,
  DeleteApiClientResponseSchema,
  DeleteApiKeyResponseSchema,
  GetApiClientResponseSchema,
  ListApiClientsResponseSchema,
  ListApiKeysResponseSchema,
} from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { issueKey, type ListedKey, listKeys, revokeKey } from "../auth/api-keys.ts";
import type { startCallers } from "../auth/callers.ts";
import { type ClientRow, deleteClient, getClient, listClients, roleOf } from "../auth/clients.ts";
import { createClient } from "../auth/create-tenant.ts";
import type { ClientType } from "../auth/principal.ts";
import type { Config } from "../config/settings.ts";
import { checkQuota, type Kept, type QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { principalOf } from "../rpc/context.ts";
import { timestampMs } from "../rpc/times.ts";
import { audited } from "./audit.ts";
import { listAuditEntries } from "./audit-log.ts";
import type { AuditQueue } from "./audit-queue.ts";
import { sessionService } from "./session-service.ts";

const clientTypes: Readonly<Record<number, ClientType>> = {
  [ApiClientType.DATA_INGEST]: "DATA_INGEST",
  [ApiClientType.USER_MANAGEMENT]: "USER_MANAGEMENT",
  [ApiClientType.USER]: "USER",
};

const kept: Kept = { things: "API clients", table: "api_clients", key: "id", columns: ["name"] };

export function apiClientService(db: Db, bounds: QuotaBounds): Partial<ServiceImpl<typeof ApiClientService>> {
  return {
    async createApiClient({ apiClient = create(ApiClientSchema) }, context) {
      const type = clientTypes[apiClient.type] as ClientType; // the proto's rules refuse every other number
      const { name } = apiClient;
      const role = roleOf(type, apiClient.role, "apiClient.role");
      return await transaction(db, async (tx) => {
        const { tenantId } = principalOf(context);
        const made = await createClient(tx, tenantId, { name, type, role });
        await checkQuota(tx, tenantId, kept, made.id, bounds);
        await audited(tx, context, made.id);
        return create(CreateApiClientResponseSchema, { apiClient: toApiClient({ ...made, name, type, role }) });
      });
    },

    async listApiClients(request, context) {
      const { clients, ...page } = await listClients(db, principalOf(context).tenantId, request);
      return create(ListApiClientsResponseSchema, { ...page, apiClients: clients.map(toApiClient) });
    },

    async getApiClient({ id }, context) {
      const client = await getClient(db, principalOf(context).tenantId, id);
      return create(GetApiClientResponseSchema, { apiClient: toApiClient(client) });
    },

    async deleteApiClient({ id }, context) {
      await transaction(db, async (tx) => {
        await deleteClient(tx, principalOf(context).tenantId, id);
        await audited(tx, context, id);
      });
      return create(DeleteApiClientResponseSchema);
    },

    async createApiKey({ clientId, key }, context) {
      const path = "key.expireTime";
      const expiresMs = key?.expireTime === undefined ? null : timestampMs(key.expireTime, path);
      const wanted = { description: key?.description ?? "", expiresMs };
      return await transaction(db, async (tx) => {
        const made = await issueKey(tx, principalOf(context).tenantId, clientId, wanted, path);
        await audited(tx, context, made.key.id);
        return create(CreateApiKeyResponseSchema, { key: toApiKey(made.key), secret: made.secret });
      });
    },

    async listApiKeys(request, context) {
      const { keys, ...page } = await listKeys(db, principalOf(context).tenantId, request);
      return create(ListApiKeysResponseSchema, { ...page, keys: keys.map(toApiKey) });
    },

    async deleteApiKey({ clientId, keyId }, context) {
      await transaction(db, async (tx) => {
        await revokeKey(tx, principalOf(context).tenantId, clientId, keyId);
        await audited(tx, context, keyId);
      });
      return create(DeleteApiKeyResponseSchema);
    },
  };
}

export function auditLogService(
  db: Db,
  settled: (tenantId: string) => Promise<void>,
): Partial<ServiceImpl<typeof AuditLogService>> {
  return {
    async listAuditEntries(request, context) {
      await settled(principalOf(context).tenantId); // what this server has refused a moment ago is in it
      return await listAuditEntries(db, principalOf(context).tenantId, request, context.signal);
    },
  };
}

/** The services of this package. */
export function tenantServices(
  db: Db,
  config: Config,
  callers: ReturnType<typeof startCallers>,
  audit: AuditQueue,
): readonly [DescService, Partial<ServiceImpl<DescService>>][] {
  return [
    [ApiClientService, apiClientService(db, config)],
    [AuditLogService, auditLogService(db, audit.settled)],
    [SessionService, sessionService(db, { ...callers, bounds: config })],
  ];
}

const timestamp = (ms: bigint | null) => (ms === null ? undefined : timestampFromMs(Number(ms)));

/** An API client as the API shows it. */
export function toApiClient({ id, name, type, role, createdMs }: ClientRow): ApiClient {
  const createTime = timestampFromMs(Number(createdMs));
  return create(ApiClientSchema, { id, name, type: ApiClientType[type], role: role ?? "", createTime });
}

/** A key as the API shows it, without its secret. */
export function toApiKey({ id, prefix, description, createdMs, expiresMs, lastUsedMs }: ListedKey): ApiKey {
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
