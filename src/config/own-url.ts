import type { Config } from "./settings.ts";

/** The address of this service as people reach it, without a slash at its end: the one that is configured, else the one it listens on. */
export function ownUrl({
  publicUrl,
  plaintext,
  host,
  port,
}: Pick<Config, "publicUrl" | "plaintext" | "host" | "port">) {
  if (publicUrl !== undefined) return publicUrl;
  // Nothing can be called at the address that means all of them.
  const called = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  return `${plaintext ? "http" : "https"}://${called.includes(":") ? `[${called}]` : called}:${port}`;
}
