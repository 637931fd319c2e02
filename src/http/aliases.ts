import type { DescService } from "@bufbuild/protobuf";
import { SettingError } from "../config/parsers.ts";

/** Foreign names by which agents made for another service, with the same messages and methods, may call. */
export interface Aliases {
  /** Full names of services, foreign to ours. */
  services: ReadonlyMap<string, string>;
  /** Headers that carry the key where ours is absent, in lower case. */
  keyHeaders: readonly string[];
}

/**
 * Maps the paths of foreign services to those of ours.
 * @throws SettingError for a service that is not there, or a foreign name that is
 */
export function aliasPaths(
  own: readonly DescService[],
  services: Aliases["services"] = new Map(),
): Map<string, string> {
  const paths = new Map<string, string>();
  for (const [foreign, ours] of services) {
    const service = own.find(({ typeName }) => typeName === ours);
    if (service === undefined) throw new SettingError(`BELFRY_SERVICE_ALIASES: there is no service ${ours}`);
    if (own.some(({ typeName }) => typeName === foreign))
      throw new SettingError(`BELFRY_SERVICE_ALIASES: ${foreign} is a service of its own`);
    for (const { name } of service.methods) paths.set(`/${foreign}/${name}`, `/${ours}/${name}`);
  }
  return paths;
}
