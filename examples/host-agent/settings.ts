import { existsSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Limits } from "./thresholds.ts";

/** The agent's settings, all from the environment. */
export interface Settings {
  url: string;
  /** PEM file of the authority that signed the server's certificate; undefined: the ones that Node.js trusts. */
  caFile: string | undefined;
  key: string | undefined;
  keyFile: string;
  managerKeyFile: string;
  source: string;
  intervalMs: number;
  bufferFolder: string;
  bufferBytesMax: number;
  limits: Limits;
}

/** @throws Error that names each wrong setting and its rule */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const wrong: string[] = [];
  const text = (name: string, fallback: string) => env[name] || fallback;
  function number(name: string, fallback: number, min: number, max: number): number {
    const value = Number(env[name] || fallback);
    if (!(value >= min && value <= max)) wrong.push(`${name} must be a number from ${min} to ${max}`);
    return value;
  }
  // Where `npm start` keeps its address, its certificate and the first key.
  const data = text("BELFRY_DATA_DIR", ".belfry");
  const url = text("AGENT_URL", keptAddress(data) ?? "https://localhost:8443");
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    wrong.push("AGENT_URL must be an address such as https://localhost:8443");
  const localCa = `${data}/ca.pem`;
  const ca = env.AGENT_CA ?? (existsSync(localCa) ? localCa : "");
  const settings = {
    url,
    caFile: ca === "" || url.startsWith("http:") ? undefined : ca,
    key: env.AGENT_KEY?.trim() || undefined,
    keyFile: text("AGENT_KEY_FILE", `${data}/agent.key`),
    managerKeyFile: text("AGENT_MANAGER_KEY_FILE", `${data}/admin.key`),
    source: text("AGENT_SOURCE", hostname()),
    intervalMs: number("AGENT_INTERVAL_SEC", 10, 0.1, 3600) * 1000,
    bufferFolder: text("AGENT_BUFFER_DIR", `${data}/agent`),
    bufferBytesMax: number("AGENT_BUFFER_MIB", 64, 1, 100_000) * 1024 * 1024,
    limits: {
      filesystem: number("AGENT_FILESYSTEM_LIMIT", 0.9, 0, 1),
      memory: number("AGENT_MEMORY_LIMIT", 0.9, 0, 1),
      load: number("AGENT_LOAD_LIMIT", 1.5, 0, 1000),
    },
  };
  if (wrong.length > 0) throw new Error(wrong.join("; "));
  return settings;
}

/** The address that the server of a data directory has kept there. */
function keptAddress(data: string): string | undefined {
  const file = `${data}/server.url`;
  return existsSync(file) ? readFileSync(file, "utf8").trim() || undefined : undefined;
}
