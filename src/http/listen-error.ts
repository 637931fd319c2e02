import type { Config } from "../config/settings.ts";
import { StartError } from "../db/start-error.ts";

/** What the operator is notified of a port that cannot be opened, as a StartError; any other error as it is. */
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
