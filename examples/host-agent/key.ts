import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createClient, type Transport } from "@connectrpc/connect";
import { ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import type { Settings } from "./settings.ts";

/**
 * The key to send with: that of the environment, else that of the agent's file. Where there is neither but a manager's key
 * lies at hand, as beside `npm start`, it is used once to make a key that can send data and do nothing else.
 */
export async function ownKey(settings: Settings, open: (key: string) => Transport): Promise<string> {
  const { key, keyFile, managerKeyFile, source } = settings;
  if (key !== undefined) return key;
  if (existsSync(keyFile)) return readFileSync(keyFile, "utf8").trim();
  if (!existsSync(managerKeyFile)) {
    throw new Error(`no key: set AGENT_KEY, or put one into ${keyFile}. A key of type DATA_INGEST is enough`);
  }
  const clients = createClient(ApiClientService, open(readFileSync(managerKeyFile, "utf8").trim()));
  const apiClient = { name: `host agent of ${source}`, type: ApiClientType.DATA_INGEST };
  const made = await clients.createApiClient({ apiClient });
  const { secret } = await clients.createApiKey({
    clientId: made.apiClient?.id ?? "",
    key: { description: "made by the agent" },
  });
  writeFileSync(keyFile, `${secret}\n`, { mode: 0o600 });
  return secret;
}
