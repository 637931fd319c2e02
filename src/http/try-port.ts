import { createServer } from "node:net";
import type { Config } from "../config/settings.ts";
import { listenError } from "./address.ts";

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
