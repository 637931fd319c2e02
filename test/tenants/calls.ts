import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { createSession } from "../../src/auth/sessions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { after, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";

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

/** What a page of the console sends. */
const page = { "sec-fetch-site": "same-origin" };

/** Both halves of a session of the tenant's manager. */
async function loggedIn({ db, tenant }: World): Promise<Record<string, string>> {
  const [row] = await db<{ keyId: string }[]>`select id as "keyId" from api_keys where tenant_id = ${tenant.id}`;
  const bounds = { sessionIdleMs: 60_000, sessionAgeMsMax: 60_000 };
  const keyId = row?.keyId ?? "";
  const { text, proof } = await transaction(db, (tx) => createSession(tx, { tenantId: tenant.id, keyId }, bounds));
  return { ...page, cookie: `__Host-belfry=${text}`, "service-session-proof": proof };
}

export const calls: Calls = {
  "SessionService/CreateSession": {
    request: ({ tenant }) => ({ proof: { case: "key", value: tenant.headers["service-api-key"] } }),
    headers: () => page,
    elsewhere: "refused",
  },
  "SessionService/GetSession": { request: () => ({}), headers: loggedIn, elsewhere: "not found" },
  "SessionService/DeleteSession": { request: () => ({}), headers: loggedIn, elsewhere: "not found" },
  "ApiClientService/CreateApiClient": hisOwn(({ mark }) => ({ apiClient: { name: mark, type: 3, role: "user" } })),
  "ApiClientService/ListApiClients": nothing(after(client)),
  "ApiClientService/GetApiClient": notFound(after(client, (id) => ({ id }))),
  "ApiClientService/DeleteApiClient": notFound(after(client, (id) => ({ id }))),
  "ApiClientService/CreateApiKey": notFound(after(client, (clientId) => ({ clientId }))),
  "ApiClientService/ListApiKeys": notFound(async (world) => ({ clientId: (await key(world)).clientId })),
  "ApiClientService/DeleteApiKey": notFound(key),
  "AuditLogService/ListAuditEntries": nothing(async ({ client, mark }) => {
    await client(ApiClientService)
      .deleteApiClient({ id: mark })
      .catch(() => {});
    return {};
  }),
};
