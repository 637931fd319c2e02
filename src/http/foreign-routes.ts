import { adoptKey } from "../auth/key-headers.ts";
import type { RpcRoute } from "../protocols/error-body.ts";
import type { Request } from "../wire/body-reader.ts";

/** Routes of protocols that are not ours, by path; a path that ends in `/*` has all below it that no other one has. */
export type ForeignRoutes = ReadonlyMap<string, RpcRoute>;

export const noRoutes: ForeignRoutes = new Map();

/** The path of a request, without its query. */
export function pathOf({ url = "" }: Pick<Request, "url">): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

/** The route of a foreign protocol at this path; undefined where there is none. */
export function foreignRoute(routes: ForeignRoutes, path: string): RpcRoute | undefined {
  const exact = routes.get(path);
  if (exact !== undefined) return exact;
  for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
    const below = routes.get(`${path.slice(0, slash)}/*`);
    if (below !== undefined) return below;
  }
  return undefined;
}

/** Adopts the key of a request from wherever it may come: on the paths of foreign protocols also from a password. */
export function keyAdopter(routes: ForeignRoutes, aliases: readonly string[] = []): (request: Request) => void {
  return (request) => {
    const basic = () => foreignRoute(routes, pathOf(request)) !== undefined;
    adoptKey(request.headers, { aliases, basic }, request.rawHeaders);
  };
}
