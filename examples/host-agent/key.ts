import { closeSync, existsSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { createClient, type Transport } from "@connectrpc/connect";
import { ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { makeOwn } from "./own-files.ts";
import type { Settings } from "./settings.ts";

/** What the text of a key looks like (docs/formats/api-key.md): whatever else a file holds is sent to nobody. */
const keyPattern = /^bf_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/;

function readKey(file: string, log: (line: string) => void): string {
  const { mode, size } = statSync(file);
  const key = size < 1000 ? readFileSync(file, "utf8").trim() : "";
  if (!keyPattern.test(key)) throw new Error(`${file} holds no key: it is one line that begins with bf_`);
  if (process.platform !== "win32" && (mode & 0o077) !== 0)
    log(`other accounts of this machine may read or write the key in ${file}: chmod 600 it`);
  return key;
}

/** An agent that was killed while it made its key has left an empty file. */
const hasKey = (file: string) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;

/**
 * The key to send with: that of the environment, else that of the agent's file. Where there is neither but a manager's key
 * lies at hand, as beside `npm start`, it is used once to make a key that can send data and do nothing else.
 */
export async function ownKey(
  settings: Settings,
  open: (key: string) => Transport,
  log: (line: string) => void,
): Promise<string> {
  const { key, keyFile, managerKeyFile, source } = settings;
  if (key !== undefined) return key;
  if (hasKey(keyFile)) return readKey(keyFile, log);
  if (!existsSync(managerKeyFile)) {
    throw new Error(`no key: set AGENT_KEY, or put one into ${keyFile}. A key of type DATA_INGEST is enough`);
  }
  const manager = readKey(managerKeyFile, log);
  // Before there is a key: one that cannot be kept would stay on the server. Not through a link, wherever that leads.
  rmSync(keyFile, { force: true });
  const fd = makeOwn(keyFile);
  try {
    const made = await makeKey(open(manager), source);
    writeSync(fd, `${made}\n`);
    return made;
  } catch (error) {
    rmSync(keyFile, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** A key that can send data and do nothing else. */
async function makeKey(transport: Transport, source: string): Promise<string> {
  const clients = createClient(ApiClientService, transport);
  const apiClient = { name: `host agent of ${source}`, type: ApiClientType.DATA_INGEST };
  const made = await clients.createApiClient({ apiClient });
  const { secret } = await clients.createApiKey({
    clientId: made.apiClient?.id ?? "",
    key: { description: "made by the agent" },
  });
  return secret;
}
