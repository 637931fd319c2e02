import type { Config } from "../config/settings.ts";
import { alertType } from "../events/labels.ts";
import type { OpenAlert } from "../events/open-alerts.ts";
import type { ForeignRoutes } from "../http/foreign-routes.ts";
import { timeStarter } from "../wire/call.ts";
import { integrationRoutes } from "./routes.ts";
import { type ItemCounts, itemCounts, type Serving } from "./serving.ts";
import type { IntegrationParts } from "./table.ts";
import { integrations } from "./table.ts";

interface Options extends Omit<Serving, "counts" | "startTime"> {
  /** Aborts when running calls must end. */
  stopping: AbortSignal;
  config: Config;
  models: IntegrationParts["models"];
  events: IntegrationParts["events"];
  points: IntegrationParts["points"];
  /** The open occurrences of a type, in pages. */
  openAlerts(tenantId: string, type: string): AsyncIterable<readonly OpenAlert[]>;
}

/** The protocols of other tools: their routes, and what came over them. */
export function startIntegrations({ models, events, points, openAlerts, stopping, ...serving }: Options): {
  foreign: ForeignRoutes;
  stats: ItemCounts["all"];
} {
  const { config } = serving;
  const counts = itemCounts();
  const parts: IntegrationParts = {
    config,
    models,
    events,
    points,
    lane: events.lane,
    alertsMax: config.receiverItemsMax,
    open: (tenantId) => openAlerts(tenantId, alertType),
  };
  const shared = { ...serving, counts, startTime: timeStarter(stopping) };
  return { foreign: integrationRoutes(integrations(parts), shared), stats: counts.all };
}
