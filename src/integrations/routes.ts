import type { ForeignRoutes } from "../http/port.ts";
import type { RpcRoute } from "../protocols/error-body.ts";
import type { Integration, Operation } from "./integration.ts";
import { grpcRoute } from "./serve-grpc.ts";
import { httpRoute } from "./serve-http.ts";
import type { Serving } from "./serving.ts";

/** The routes of all integrations. @throws Error when two of them want one path */
export function integrationRoutes(integrations: readonly Integration[], serving: Serving): ForeignRoutes {
  const routes = new Map<string, RpcRoute>();
  const add = (path: string, route: RpcRoute) => {
    if (routes.has(path)) throw new Error(`two integrations want ${path}`);
    routes.set(path, route);
  };
  for (const integration of integrations) {
    const byPath = new Map<string, Map<string, Operation>>();
    for (const operation of integration.operations) {
      for (const route of operation.routes) {
        if ("grpc" in route) add(`/${route.grpc}`, grpcRoute(serving, integration, operation));
        else byPath.set(route.path, (byPath.get(route.path) ?? new Map()).set(route.method, operation));
      }
    }
    for (const [path, operations] of byPath) add(path, httpRoute(serving, integration, operations));
    if (integration.below !== undefined) add(`${integration.below}/*`, httpRoute(serving, integration, new Map()));
  }
  return routes;
}
