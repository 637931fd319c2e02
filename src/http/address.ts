import { createServer } from "node:net";
import type { Config } from "../config/settings.ts";
import { StartError } from "../db/start-error.ts";

/** Returns the address by which a port is called. */
export function calledUrl(host: string, port: number, secure: boolean): string {
  // Nothing can be called at the address that means all of them.
  const called = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  const name = called.includes(":") ? `[${called}]` : called;
  return `${secure ? "https" : "http"}://${name}:${port}`;
}

/** Turns a listen error into a StartError the operator can act on; returns other errors unchanged. */
export function listenError(error: NodeJS.ErrnoException, { host, port }: Pick<Config, "host" | "port">): Error {
  if (error.code === "EADDRINUSE") {
    return new StartError(`port ${port} on ${host} is in use; set BELFRY_PORT to another one`);
  }
  if (error.code === "EACCES") {
    return new StartError(
      `port ${port} on ${host} may not be opened by this account; set BELFRY_PORT to one above 1023`,
    );
  }
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
    return new StartError(`BELFRY_HOST ${host} is no address of this machine`);
  }
  return error;
}

/** Opens the port and closes it again, before anything else is made. @throws StartError when it cannot be opened */
export async function tryPort(config: Pick<Config, "host" | "port">): Promise<void> {
  const { host, port } = config;
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, config)));
    probe.listen({ port, host, exclusive: true }, resolve);
  });
  await new Promise((resolve) => probe.close(resolve));
}
