import { SettingError } from "../config/parsers.ts";
import type { RpcRoute } from "../protocols/error-body.ts";

/** Foreign names by which agents made for another service, with the same messages and methods, may call. */
export interface Aliases {
  /** Full names of services, foreign to ours. */
  services: ReadonlyMap<string, string>;
  /** Headers that carry the key where ours is absent, in lower case. */
  keyHeaders: readonly string[];
}

/**
 * Adds the paths of foreign services to the routes of ours.
 * @throws SettingError for a service that is not there, or a foreign name that is
 */
export function addAliases(routes: Map<string, RpcRoute>, services: Aliases["services"]): void {
  const own = [...routes];
  for (const [foreign, ours] of services) {
    const methods = own.filter(([path]) => path.startsWith(`/${ours}/`));
    if (methods.length === 0) throw new SettingError(`BELFRY_SERVICE_ALIASES: there is no service ${ours}`);
    if (own.some(([path]) => path.startsWith(`/${foreign}/`)))
      throw new SettingError(`BELFRY_SERVICE_ALIASES: ${foreign} is a service of its own`);
    for (const [path, route] of methods) routes.set(`/${foreign}${path.slice(ours.length + 1)}`, route);
  }
}
