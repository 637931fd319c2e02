import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import type { Calls, World } from "../support/calls.ts";

async function client({ client, mark }: World): Promise<string> {
  const { apiClient } = await client(ApiClientService).createApiClient({
    apiClient: { name: mark, type: 3, role: "user" },
  });
  return apiClient?.id ?? "";
}

async function key(world: World): Promise<{ clientId: string; keyId: string }> {
  const clientId = await client(world);
  const made = await world.client(ApiClientService).createApiKey({ clientId, key: { description: world.mark } });
  return { clientId, keyId: made.key?.id ?? "" };
}

export const calls: Calls = {
  "ApiClientService/CreateApiClient": {
    request: ({ mark }) => ({ apiClient: { name: mark, type: 3, role: "user" } }),
    elsewhere: "his own",
  },
  "ApiClientService/ListApiClients": {
    request: async (world) => {
      await client(world);
      return {};
    },
    elsewhere: "nothing",
  },
  "ApiClientService/GetApiClient": {
    request: async (world) => ({ id: await client(world) }),
    elsewhere: "not found",
  },
  "ApiClientService/DeleteApiClient": {
    request: async (world) => ({ id: await client(world) }),
    elsewhere: "not found",
  },
  "ApiClientService/CreateApiKey": {
    request: async (world) => ({ clientId: await client(world) }),
    elsewhere: "not found",
  },
  "ApiClientService/ListApiKeys": {
    request: async (world) => ({ clientId: (await key(world)).clientId }),
    elsewhere: "not found",
  },
  "ApiClientService/DeleteApiKey": { request: key, elsewhere: "not found" },
  "AuditLogService/ListAuditEntries": {
    request: async ({ client, mark }) => {
      await client(ApiClientService)
        .deleteApiClient({ id: mark })
        .catch(() => {});
      return {};
    },
    elsewhere: "nothing",
  },
};
